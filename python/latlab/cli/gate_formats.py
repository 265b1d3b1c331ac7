"""Gates for programs: GitHub's annotations and step summary, JUnit's XML, JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING
from xml.etree import ElementTree as Xml

from latlab.report.markdown import escaped
from latlab.text import clean

if TYPE_CHECKING:
    from latlab.compare.outcome import Check


def github(checked: Check) -> str:
    """A workflow command for each gate that is not held, then the summary as a line of the log."""
    return "".join(f"{line}\n" for line in _commands(checked))


def _commands(checked: Check) -> Iterator[str]:
    for each in checked.outcomes:
        if each.verdict != "held":
            command = "error" if checked.fails(each) else "warning"
            title = _escaped(f"{each.verdict}: {each.name}").replace(":", "%3A").replace(",", "%2C")
            yield f"::{command} title={title}::{_escaped(each.why)}"
    yield checked.summary


def _escaped(text: str) -> str:
    """As GitHub's runner reads it (actions/toolkit, `command.ts`)."""
    return clean(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def markdown(checked: Check) -> str:
    """A heading and a table, for the step's summary."""
    rows = [
        f"| {' | '.join(escaped(clean(cell)) for cell in (each.word, each.gate.key, each.name, each.why))} |"
        for each in checked.outcomes
    ]
    head = [
        "",
        f"### latlab: {checked.summary}",
        "",
        "| verdict | gate | figure | why |",
        "|---|---|---|---|",
    ]
    return "\n".join([*head, *rows, ""])


def junit(checked: Check) -> str:
    """One suite with a test case for each gate and figure: broken is a failure, undecided is skipped."""
    words = [each.word for each in checked.outcomes]
    counts = {"tests": len(words), "failures": words.count("broken"), "skipped": words.count("undecided")}
    suite = Xml.Element("testsuite", {"name": "latlab check", **{key: str(n) for key, n in counts.items()}})
    for each in checked.outcomes:
        names = {"classname": f"latlab.{clean(each.gate.key)}", "name": clean(each.name)}
        case = Xml.SubElement(suite, "testcase", names)
        kind = {"broken": "failure", "undecided": "skipped"}.get(each.word)
        if kind:
            Xml.SubElement(case, kind, {"message": clean(each.why)})
        else:
            Xml.SubElement(case, "system-out").text = clean(f"{each.word}: {each.why}")
    Xml.indent(suite, " ")
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + Xml.tostring(suite, encoding="unicode") + "\n"


def plain(checked: Check) -> str:
    """Everything as one JSON object."""
    return json.dumps(checked.as_json(), ensure_ascii=False, allow_nan=False, indent=1) + "\n"
