"""Every form in which latlab shows a frozen run, lesson or ledger, made in this process."""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import io
import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from unittest import mock

import msgspec
import zstandard
from tests.calling import called
from tests.golden import recorded
from tests.golden.cases import INPUTS

from latlab import lessons
from latlab.charts import CHARTS, overlay, standalone
from latlab.charts.many import machines_of
from latlab.cli.terminal.lesson_view import lesson_lines
from latlab.cli.terminal.screen import Screen
from latlab.errors import UserError
from latlab.explain.judge import Judgement
from latlab.explain.model import Explained
from latlab.explain.page import roofline
from latlab.lessons import document as pages
from latlab.lessons.display import html as displayed
from latlab.lessons.ipynb import notebook as as_notebook
from latlab.lessons.model import Result
from latlab.notebook import display
from latlab.report import build, probes
from latlab.run.model import Record
from latlab.run.run import Run, load
from latlab.topics.surprises import surprises

Forms = dict[str, str | bytes]

#: Forms of which a sum is kept alone: they are long, and say what others say.
_SUMMED: Final = re.compile(r"\.(sha256|json|jsonl|ipynb|csv)$")
#: Forms of a run of which the new lines are kept where something is missing.
_LONG: Final = ("show.txt", "show-v.txt", "report.md", "charts.txt", "notebook.html")
_LINE: Final = 110
_COLOURLESS: Final = {"LC_ALL": "C.UTF-8", "TERM": "dumb", "TZ": "UTC"}


def is_kept(name: str) -> bool:
    """Whether a form is kept as it is; of others the sum is."""
    return not _SUMMED.search(name)


# --------------------------------------------------------------------------------------------- normal forms


def spread(value: Any, indent: int = 0) -> str:  # noqa: ANN401 - any JSON
    """JSON of which all that fits stands on a line: a row of a chart is one."""
    text = json.dumps(value, ensure_ascii=False)
    if len(text) + indent <= _LINE or not isinstance(value, dict | list) or not value:
        return text
    inner = " " * (indent + 1)
    if isinstance(value, list):
        parts = [spread(each, indent + 1) for each in value]
    else:
        parts = [f"{json.dumps(name)}: {spread(each, indent + 1)}" for name, each in value.items()]
    opening, closing = "[]" if isinstance(value, list) else "{}"
    joined = f",\n{inner}".join(parts)
    return f"{opening}\n{inner}{joined}\n{' ' * indent}{closing}"


def page_and_data(page: str) -> tuple[str, str]:
    """A page without scripts, styles and their policy; and the data of its charts, to read."""
    data = re.search(r'<script[^>]* id="latlab-data"[^>]*>(.*?)</script>', page, re.DOTALL)
    shown = re.sub(r"(<(script|style)\b[^>]*>).*?(</\2>)", r"\1…\3", page, flags=re.DOTALL)
    shown = re.sub(r"'sha256-[^']+'", "'sha256-…'", shown)
    return shown, spread(json.loads(data[1])) + "\n" if data else ""


def bytes_of(form: str | bytes) -> bytes:
    """A form as a file's content."""
    return form.encode() if isinstance(form, str) else form


def text_of(form: str | bytes) -> str:
    """A form to read."""
    return form if isinstance(form, str) else form.decode()


def sums(forms: Forms) -> str:
    """A line a form: its SHA-256 and its name."""
    return "".join(
        f"{hashlib.sha256(bytes_of(form)).hexdigest()}  {name}\n" for name, form in sorted(forms.items())
    )


def difference(before: str, after: str) -> str:
    """The lines that differ, without their surroundings."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=0)
    return "".join(f"{line}\n" for line in list(lines)[2:] if not line.startswith("@@"))


def new_lines(before: str, after: str) -> str:
    """What is said only now."""
    return "".join(line for line in difference(before, after).splitlines(keepends=True) if line[0] == "+")


# ----------------------------------------------------------------------------------------------------- runs


@contextlib.contextmanager
def same_words(run: Run) -> Iterator[None]:
    """One document of a run, in which probes say of themselves what does not change with the core."""
    entries = [
        {"id": each, "title": f"Title of {each}", "method": f"How {each} works.", "method_version": 1}
        for each in dict.fromkeys([*(entry.id for entry in run.header.plan), *run.records.probes])
    ]
    known, real = probes.from_json(json.dumps(entries)), build.build
    document = real(run, known)
    with mock.patch.object(build, "build", return_value=document):
        yield


def _reported(folder: Path, *arguments: str) -> str:
    """What a command prints, on both streams."""
    result = called(arguments, folder, _COLOURLESS)
    return result.stdout + (f"--- stderr, {result.returncode}\n{result.stderr}" if result.stderr else "")


def _written(folder: Path, *arguments: str) -> bytes:
    """What a command writes to the file that its last argument names."""
    _reported(folder, *arguments)
    return (folder / arguments[-1]).read_bytes()


def as_seen_first(file: Path, folder: Path) -> Forms:
    """A run as a table and as a report."""
    run = load(file)
    with same_words(run):
        return {
            "show.txt": _reported(folder, "show", str(file)),
            "show-v.txt": _reported(folder, "show", str(file), "-v"),
            "report.md": _written(folder, "report", str(file), "-o", "report.md"),
            "report.html.sha256": _written(folder, "report", str(file), "-o", "report.html"),
            "charts.txt": _reported(folder, "chart", str(file)),
            "surprises.txt": _surprises(run),
            "notebook.html": display.run_html(run),
        }


def of_missing(file: Path, folder: Path, whole: Forms) -> Forms:
    """A run of which something is missing: what it says that the whole one does not."""
    forms = as_seen_first(file, folder)
    new = {f"new {name}": new_lines(text_of(whole[name]), text_of(forms[name])) for name in _LONG}
    sums_alone = {f"{name}.sha256": forms.pop(name) for name in _LONG}
    return forms | new | sums_alone


def of_run(file: Path, folder: Path) -> Forms:
    """A run in every form."""
    run = load(file)
    forms = as_seen_first(file, folder)
    forms["body.html"], forms["data.txt"] = page_and_data(
        (folder / "report.html").read_text(encoding="utf-8")
    )
    for width in ("140", "60"):
        with mock.patch.dict(_COLOURLESS, {"COLUMNS": width}):
            forms[f"show-{width}.txt"] = _reported(folder, "show", str(file))
    with mock.patch.dict(_COLOURLESS, {"LC_ALL": "C"}):
        forms["show-ascii.txt"] = _reported(folder, "show", str(file), "-v")
    for ending in ("csv", "json", "jsonl"):
        forms[f"export.{ending}"] = _written(folder, "export", str(file), "-o", f"export.{ending}")
    forms["shared.jsonl"] = _written(folder, "export", str(file), "--anonymous", "-o", "shared.jsonl")
    forms["export.npz.txt"] = _arrays(_written(folder, "export", str(file), "-o", "export.npz"))
    forms["export.parquet.txt"] = _columns(_written(folder, "export", str(file), "-o", "export.parquet"))
    for chart in CHARTS:
        if chart.absence(run) is None:
            drawn = standalone(chart.id, run).to_dict(validate=False)
            forms[f"chart-{chart.id}.json"] = json.dumps(drawn, ensure_ascii=False)
    return forms | _notebook(run)


def _surprises(run: Run) -> str:
    return "".join(f"{each.score:8.4f} {each.id}: {each.text}\n" for each in surprises(run, most=99))


def _notebook(run: Run) -> Forms:
    """Objects as a notebook shows them: of each probe its first record, and its last that has none."""
    shown: list[object] = [run, run.records, run.records[:3]]
    for probe in run.records.probes:
        own = list(run.select(probe))
        shown += [own[0], *[record for record in own if record.error is not None][-1:]]
    texts = [f"{each.label if isinstance(each, Record) else each!r}\n" for each in shown]
    html = [f"{each._repr_html_()}\n" for each in shown]  # type: ignore[attr-defined]
    bundles = [
        {"text/plain": repr(run), "text/html": display.run_html(run)},
        *({"text/plain": each.label, "text/html": display.record_html(each)} for each in run.records[:2]),
    ]
    return {
        "notebook.txt": "".join(texts),
        "objects.html": "".join(html),
        "bundles.json": json.dumps(bundles),
        "repr.sha256": "".join(map(repr, shown)),
    }


def _arrays(content: bytes) -> str:
    """Names, types, shapes and sums of arrays."""
    import numpy as np  # noqa: PLC0415 - as the export does

    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        all_of_them = {name: arrays[name] for name in arrays.files}
    whole = hashlib.sha256()
    kinds: dict[str, int] = {}
    for name, array in all_of_them.items():
        whole.update(f"{name} {array.dtype.str} {array.shape}\n".encode() + array.tobytes())
        kind = f"{re.sub(r'^[0-9]+', 'N', name)} {array.dtype.kind}, {array.ndim} dimensions"
        kinds[kind] = kinds.get(kind, 0) + 1
    return "".join(f"{count} {kind}\n" for kind, count in kinds.items()) + f"{whole.hexdigest()}  all\n"


def _columns(content: bytes) -> str:
    """Columns with their types, and the sum of the rows."""
    from pyarrow import parquet  # noqa: PLC0415 - as the export does

    table = parquet.read_table(io.BytesIO(content))
    rows = json.dumps(table.to_pylist(), ensure_ascii=False)
    columns = "".join(f"{field.name}: {field.type}\n" for field in table.schema)
    return f"{columns}{table.num_rows} rows, {hashlib.sha256(rows.encode()).hexdigest()}\n"


def of_several(files: Mapping[str, Path], folder: Path) -> Forms:
    """Several runs over one another: what differs, its table and its picture."""
    names = [str(file) for file in files.values()]
    machines = machines_of([load(file) for file in files.values()])
    forms: Forms = {}
    for name in overlay.NAMES:
        forms[f"{name}.txt"] = _reported(folder, "chart", name, *names)
        with contextlib.suppress(UserError):  # as just said
            some, _ = overlay.checked(name, machines)
            forms[f"{name}.json"] = json.dumps(overlay.standalone(name, some).to_dict(validate=False))
            forms[f"{name}.csv"] = _written(folder, "chart", name, *names, "-o", f"{name}.csv")
    return forms


# -------------------------------------------------------------------------------------------------- lessons


def of_lesson(name: str) -> Forms:
    """A lesson in every form, and what changes where a part of it could not be measured."""
    recording = recorded.load(INPUTS / "lessons" / f"{name}.json.zst")
    result = recorded.play(recording)
    text = _lesson_text(result)
    html, markdown = (pages.render(result, form).decode() for form in ("html", "md"))
    forms: Forms = {
        "first.txt": _lesson_text(result, full=False),
        "shown.txt": text,
        "cells.txt": _cells(result),
        "wide.txt.sha256": _lesson_text(result, 140),
        "ascii.txt.sha256": _lesson_text(result, 80, unicode=False),
        "result.json": result.to_json(),
        "lesson.md.sha256": markdown,
        "page.html.sha256": html,
        "notebook.ipynb": as_notebook(result),
        "cell.html.sha256": displayed(result),
    }
    others = {"only the plain-Python arm": recorded.play(recording, bare=True)}
    if lessons.named(name).GUESS is not None:
        others["with a guess"] = recorded.play(recording, guess="forty")
    attempts = list(recording["attempts"])
    others |= {f"without {what}": recorded.play(recording, without=[what]) for what in attempts}
    others["without all of it"] = recorded.play(recording, without=attempts)
    changes = {what: difference(text, _lesson_text(other)) for what, other in others.items()}
    forms["absences.txt"] = "".join(f"##### {what}\n\n{lines}\n" for what, lines in changes.items())
    forms["absences.json"] = json.dumps([other.to_json() for other in others.values()])
    barest = others["without all of it"]
    return forms | {"barest.html.sha256": pages.render(barest, "html")}


def _lesson_text(result: Result, width: int = 80, *, unicode: bool = True, full: bool = True) -> str:
    lines = lesson_lines(result, Screen(width=width, unicode=unicode), full=full)
    return "".join(f"{line.text}\n" for line in lines)


def _cells(result: Result) -> str:
    """Every figure of a lesson, a line each."""
    lines = []
    for where, cell in result.cells.items():
        published = f", published {cell.published.text}" if cell.published else ""
        lines.append(f"{where}: {cell.shown} ({cell.unit}, {cell.repeats}{published}) {cell.why}".rstrip())
    return "".join(f"{line}\n" for line in lines)


# -------------------------------------------------------------------------------------------------- explain


def of_ledger(name: str, folder: Path) -> Forms:
    """What `latlab explain` prints and writes of a kept ledger."""
    kept = msgspec.json.decode(zstandard.decompress((INPUTS / f"{name}.json.zst").read_bytes()))
    explained = msgspec.convert(kept["explained"], Explained)
    judgement = msgspec.convert(kept["judgement"], Judgement)
    run = load(INPUTS / "standard.json.zst")
    then = datetime.fromisoformat(run.header.started)
    stand_ins = {
        "latlab.explain.run.explain": mock.Mock(
            return_value=(explained, msgspec.json.encode(kept["explained"]))
        ),
        "latlab.cli.explain._judged": mock.Mock(return_value=judgement),
        "latlab.explain.page.build.describe": mock.Mock(return_value=run.header),
        "latlab.explain.page.build.newest": mock.Mock(return_value=dict.fromkeys(roofline.PROBES, run)),
        "latlab.explain.page.build.version": mock.Mock(return_value="0.1.0"),
        # Both say when they were written.
        "latlab.explain.firefox.time": mock.Mock(**{"time.return_value": then.timestamp()}),
        "latlab.explain.page.build.datetime": mock.Mock(**{"now.return_value.astimezone.return_value": then}),
    }
    outputs = {"json": "where.json", "html": "where.html", "trace": "chrome.json", "firefox": "firefox.json"}
    with contextlib.ExitStack() as stack:
        for place, stand_in in stand_ins.items():
            stack.enter_context(mock.patch(place, stand_in))
        words = [word for option, file in outputs.items() for word in (f"--{option}", file)]
        said = _reported(folder, "explain", "--by", "symbol", *words, "--", "true")
        lines = _reported(folder, "explain", "--by", "line", "--", "true")
    written = {name: (folder / name).read_bytes() for name in outputs.values()}
    page, data = page_and_data(written["where.html"].decode())
    return {
        "said.txt": said,
        "lines.txt": difference(said, lines),
        "where.body.html": page,
        "data.json": data,
        "chrome.txt": _shape(written["chrome.json"]),
        "firefox.txt": _shape(written["firefox.json"]),
    } | {f"{name}.sha256": content for name, content in written.items()}


def _shape(content: bytes) -> str:
    """The beginning of a file for another program, to read."""
    return "\n".join(spread(json.loads(content)).splitlines()[:120]) + "\n"
