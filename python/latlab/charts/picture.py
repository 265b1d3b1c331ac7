"""Charts as SVG, PNG or PDF without a browser, by vl-convert (the extra `latlab[export]`)."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

from latlab.charts import standalone
from latlab.errors import UserError
from latlab.run.run import Run
from latlab.run.saving import save

FORMS = ("svg", "png", "pdf")
#: Pixels a point: sharp on a dense screen and in a slide.
_PNG_SCALE = 2.0


def write(name: str, run: Run, path: str | os.PathLike[str]) -> Path:
    """Writes one chart to `path`, in the form that its ending names; an older file of that name is replaced.

    Raises:
        UserError: no such chart or form, no data, no extra `latlab[export]`, or the file cannot be written.
    """
    target = Path(path)
    return save(target, render(run, name, target.suffix.removeprefix(".").lower()))


def render(run: Run, name: str, form: str) -> bytes:
    """One chart in one of :data:`FORMS`, in the light theme with its title.

    Raises:
        UserError: no such chart or form, no data for it, or no extra `latlab[export]`.
    """
    if form not in FORMS:
        raise UserError(f"a chart can be {', '.join(FORMS)}, not {form!r}: name the file so")
    return convert(standalone(name, run).to_dict(validate=False), form)


def convert(spec: dict[str, Any], form: str) -> bytes:
    """A Vega-Lite specification as a picture; it may load nothing.

    Raises:
        UserError: no extra `latlab[export]`.
    """
    try:
        import vl_convert  # noqa: PLC0415 - 84 MB, only where it was asked for
    except ImportError:
        raise UserError("pictures need the extra: pip install 'latlab[export]'") from None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if form == "png":
            return bytes(vl_convert.vegalite_to_png(spec, scale=_PNG_SCALE, allowed_base_urls=[]))
        if form == "pdf":
            return bytes(vl_convert.vegalite_to_pdf(spec, allowed_base_urls=[]))
        return str(vl_convert.vegalite_to_svg(spec, allowed_base_urls=[])).encode("utf-8")
