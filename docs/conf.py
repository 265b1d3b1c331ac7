"""How Sphinx renders the documentation."""

from __future__ import annotations

from importlib.metadata import version as installed_version

project = "latlab"
author = "The latlab authors"
copyright = "2026, the latlab authors"
version = release = installed_version("latlab")

extensions = ["myst_parser"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"latlab {version}"
html_copy_source = False
html_show_sphinx = False
