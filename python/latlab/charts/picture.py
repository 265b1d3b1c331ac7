"""Charts as SVG, PNG or PDF without a browser, by vl-convert (the extra `latlab[export]`)."""

from __future__ import annotations

import os
import re
import warnings
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from latlab.charts import standalone
from latlab.errors import UserError
from latlab.run.run import Run
from latlab.run.saving import save
from latlab.text import clean
from latlab.topics.front import facts
from latlab.view.theme import FONT, LIGHT

FORMS = ("svg", "png", "pdf")
#: Pixels a point: sharp on a dense screen and in a slide.
_PNG_SCALE = 2.0
#: A slide's size, its margin, and where the picture begins, in pixels.
_WIDTH, _HEIGHT, _MARGIN, _TOP = 1920, 1080, 60, 190
#: How wide a character is at most on average, as a share of its size.
_CHARACTER = 0.63


def write(name: str, run: Run, path: str | os.PathLike[str], *, slide: bool = False) -> Path:
    """Writes one chart to `path`, in the form that its ending names; an older file of that name is replaced.

    Raises:
        UserError: no such chart or form, no data, no extra `latlab[export]`, or the file cannot be written.
    """
    target = Path(path)
    return save(target, render(run, name, target.suffix.removeprefix(".").lower(), slide=slide))


def render(run: Run, name: str, form: str, *, slide: bool = False) -> bytes:
    """One chart in one of :data:`FORMS`, in the light theme with its title; see :func:`convert` for slides.

    Raises:
        UserError: no such chart or form, no data for it, or no extra `latlab[export]`.
    """
    if form not in FORMS:
        raise UserError(f"a chart can be {', '.join(FORMS)}, not {form!r}: name the file so")
    return convert(
        standalone(name, run).to_dict(validate=False), form, " · ".join(facts(run)) if slide else ""
    )


def convert(spec: dict[str, Any], form: str, slide: str = "") -> bytes:
    """A Vega-Lite specification as a picture; it may load nothing.

    Args:
        spec: With its title.
        form: One of :data:`FORMS`.
        slide: A line below the title, of a picture of 16 by 9; the picture alone where empty.

    Raises:
        UserError: no extra `latlab[export]`.
    """
    try:
        import vl_convert  # noqa: PLC0415 - 84 MB, only where it was asked for
    except ImportError:
        raise UserError("pictures need the extra: pip install 'latlab[export]'") from None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if slide:
            inner = vl_convert.vegalite_to_svg({**spec, "title": None}, allowed_base_urls=[])
            whole = _slide(str(inner), str(spec.get("title") or ""), slide)
            if form == "png":
                return bytes(vl_convert.svg_to_png(whole, scale=1.0))
            return bytes(vl_convert.svg_to_pdf(whole)) if form == "pdf" else whole.encode("utf-8")
        if form == "png":
            return bytes(vl_convert.vegalite_to_png(spec, scale=_PNG_SCALE, allowed_base_urls=[]))
        if form == "pdf":
            return bytes(vl_convert.vegalite_to_pdf(spec, allowed_base_urls=[]))
        return str(vl_convert.vegalite_to_svg(spec, allowed_base_urls=[])).encode("utf-8")


def _slide(picture: str, title: str, line: str) -> str:
    """The picture as large as a slide has room for, below its title and a line."""
    inner = picture.replace(
        "<svg ",
        f'<svg x="{_MARGIN}" y="{_TOP}" preserveAspectRatio="xMidYMin meet" ',
        1,
    )
    # The outer size; the viewBox, which stays, says how large the picture was drawn.
    width, height = _WIDTH - 2 * _MARGIN, _HEIGHT - _TOP - _MARGIN
    inner = re.sub(r'(<svg [^>]*?) width="[^"]*"', rf'\1 width="{width}"', inner, count=1)
    inner = re.sub(r'(<svg [^>]*?) height="[^"]*"', rf'\1 height="{height}"', inner, count=1)

    def text(words: str, y: int, most: int, colour: str, weight: int) -> str:
        shown = clean(words)
        size = min(most, width / (_CHARACTER * max(len(shown), 1)))
        return (
            f'<text x="{_MARGIN}" y="{y}" font-family={quoteattr(FONT)} font-size="{size:.0f}"'
            f' font-weight="{weight}" fill="{colour}">{escape(shown)}</text>'
        )

    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}"'
        f' viewBox="0 0 {_WIDTH} {_HEIGHT}"><rect width="100%" height="100%" fill="{LIGHT.surface}"/>'
        f"{text(title, 95, 46, LIGHT.ink, 600)}{text(line, 145, 26, LIGHT.muted, 400)}{inner}</svg>"
    )
