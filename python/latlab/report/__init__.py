"""The report of a run: one document model; HTML, Markdown and PDF are its renderings."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from latlab.errors import UserError

if TYPE_CHECKING:
    from latlab.report.probes import Probes
    from latlab.run.run import Run

__all__ = ["FORMATS", "chart", "render", "write"]

FORMATS = ("html", "md", "pdf")
"""What a report can be; the ending of the file's name says which."""


def render(run: Run, form: str, probes: Probes | None = None) -> bytes:
    """The report of any run in one of :data:`FORMATS`; `probes` instead of the core's registry.

    Raises:
        UserError: the form is none of these, or PDF without the extra `latlab[export]`.
    """
    from latlab.report import build, html, markdown, pdf  # noqa: PLC0415 - charts take a quarter of a second to import

    if form not in FORMATS:
        raise UserError(f"a report can be {', '.join(FORMATS)}, not {form!r}: name the file so")
    document = build.build(run, probes)
    if form == "pdf":
        return pdf.render(document)
    return (html.render(document) if form == "html" else markdown.render(document)).encode("utf-8")


def write(
    run: Run, path: str | os.PathLike[str], probes: Probes | None = None, *, replace: bool = True
) -> Path:
    """Writes the report to `path`, in the form that its ending names; see :func:`render`.

    Raises:
        UserError: no such form, the file cannot be written, or it exists and is not to be replaced.
    """
    from latlab.run.saving import save  # noqa: PLC0415 - as above

    target = Path(path)
    return save(target, render(run, _form(target), probes), replace=replace)


def chart(run: Run, name: str, path: str | os.PathLike[str]) -> Path:
    """Writes one chart as SVG, PNG or PDF, without a browser.

    Raises:
        UserError: no such chart or form, no data, no extra `latlab[export]`, or the file cannot be written.
    """
    from latlab.charts import picture  # noqa: PLC0415 - as above

    return picture.write(name, run, path)


def _form(path: Path) -> str:
    form = path.suffix.removeprefix(".").lower()
    return {"markdown": "md", "htm": "html"}.get(form, form)
