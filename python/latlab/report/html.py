"""The report as one HTML file that opens from disk, loads nothing and runs only its own scripts."""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import re
from importlib import resources

import jinja2
from markupsafe import Markup

from latlab.report.cells import as_csv, figure_and_spread, is_number, shown
from latlab.report.document import Document
from latlab.report.packing import packed
from latlab.text import counted
from latlab.view.theme import CSS_VARIABLES, DARK, LIGHT, config, css

_SCRIPTS = ("vega.min.js", "vega-lite.min.js", "vega-interpreter.js", "report.js")
_QUANTITY = re.compile(r"(\d) ([pnµm]?s|[KMG]iB|[kMGT]?B|[kMGT]?B/s|%)(?![\w/])")
# Without scripts the tables are all there is: they are open, and the empty places of charts are not shown.
_NOSCRIPT_STYLE = (
    ".chart,.tools{display:none}details::details-content{content-visibility:visible;block-size:auto}"
)
# What would end a script element or begin a comment in it, and two line ends that JSON allows.
_ESCAPES = {character: f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}


def render(document: Document) -> str:
    """The whole page."""
    style = _style()
    scripts = tuple(map(_asset, _SCRIPTS))
    first_use: dict[str, str] = {}
    for section in document.sections:
        for method in section.methods:
            first_use.setdefault(method.probe, section.id)
    return _template().render(
        document=document,
        policy=_policy(scripts, (style, _NOSCRIPT_STYLE)),
        style=Markup(style),  # noqa: S704 - our own file
        noscript_style=Markup(_NOSCRIPT_STYLE),  # noqa: S704 - a constant
        scripts=[Markup(script) for script in scripts],  # noqa: S704 - our own files
        island=Markup(island(document)),  # noqa: S704 - holds no character that HTML knows
        first_use=first_use,
    )


def island(document: Document) -> str:
    """The charts and their figures as JSON that is also safe inside a script element."""
    figures = document.figures
    specs, parts = packed({figure.name: figure.spec for figure in figures})
    charts = {figure.name: {"spec": specs[figure.name], "csv": as_csv(figure.table)} for figure in figures}
    data = {"config": config(CSS_VARIABLES), "parts": parts, "charts": charts}
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate({ord(character): escape for character, escape in _ESCAPES.items()})


def glued(text: str) -> str:
    """A number and its unit stay on one line."""
    return _QUANTITY.sub("\\1\u00a0\\2", text)


@functools.cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("latlab.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["glued"] = glued
    environment.globals.update(
        counted=counted, shown=shown, is_number=is_number, figure_and_spread=figure_and_spread
    )
    return environment.get_template("report.html.j2")


@functools.cache
@functools.cache
def _style() -> str:
    # Paper comes last: it wins over a dark screen.
    light, dark = css(LIGHT), css(DARK)
    themes = (
        f":root {{ {light} }}\n@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n"
        f"@media print {{ :root {{ {light} }} }}\n"
    )
    return themes + _asset("report.css")


def _asset(name: str) -> str:
    return resources.files("latlab.report").joinpath("assets", name).read_text(encoding="utf-8").strip()


def _policy(scripts: tuple[str, ...], styles: tuple[str, ...]) -> str:
    """Nothing is loaded and nothing runs but what is listed here by its hash."""
    allowed = " ".join(map(_hash, scripts))
    styled = " ".join(map(_hash, styles))
    return (
        f"default-src 'none'; script-src {allowed}; style-src {styled}; img-src data:; base-uri"
        " 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
