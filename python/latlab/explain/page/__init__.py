"""What `latlab explain` found, as one HTML page: the report's own look, its own pictures."""

from latlab.explain.page.build import document, render

__all__ = ["document", "render"]
