"""What explain shows and writes says no secret, and with --anonymous not whose program it was."""

from __future__ import annotations

import json
import re
from types import SimpleNamespace

import msgspec
import pytest
from tests.explain.in_process import explain
from tests.explain.ledgers import ledger

from latlab.cli.terminal.screen import Screen
from latlab.explain import judge
from latlab.explain.beside import sentences
from latlab.explain.firefox import firefox
from latlab.explain.model import Explained
from latlab.explain.page.build import document
from latlab.explain.places import places
from latlab.explain.prove import Measured, Proof
from latlab.explain.sharing import anonymous
from latlab.explain.table import facts, processes
from latlab.explain.trace import chrome
from latlab.report import html
from latlab.run.model import Machine

MARKS = (
    *("hostmark", "usermark", "pathmark", "filemark", "serialmark", "2001:db8::17", "203.0.113.7"),
    *("52:54:00:4f:11:ab", "domainmark"),
)
SAID = (
    "/home/usermark/pathmark/filemark.bin on hostmark.domainmark.example, 2001:db8::17 and 203.0.113.7:80,"
    " 52:54:00:4f:11:ab, ata-Model_SERIALMARK77; usermark and HOSTMARK"
)
SHARE = {"share": 0.1, "low": 0.1, "high": 0.1}


@pytest.fixture
def marked(monkeypatch: pytest.MonkeyPatch) -> Explained:
    """A ledger with names wherever a program can bring them in."""
    monkeypatch.setattr("socket.gethostname", lambda: "hostmark.domainmark.example")
    plain = msgspec.to_builtins(ledger({"storage-wait": 0.5}))
    plain["program"]["arguments"] = ["/home/usermark/pathmark/x", "filemark.bin", SAID]
    plain["notes"] = [SAID]
    plain["levels"] = [{"level": 1, "name": "x", "available": False, "reason": SAID}]
    plain["level"] = 2
    plain["raise"] = SAID
    plain["processes"] = [{"pid": n, "parent": 1, "name": SAID, "wall_s": 1, "running": 1} for n in (1, 2)]
    moved = {"bytes": 9e6, "inferred": 0, "block_known": 9e6, "busy_s": 1}
    row = {
        "kind": "file",
        "process": 1,
        "process_name": SAID,
        "opened": 1,
        "seeks": 0,
        "from_s": 0,
        "to_s": 1,
    }
    plain["files"] = {"rows": [{"name": SAID, "descriptors": [3], "read": moved, **row}], "looks": 5}
    plain["symbols"] = [{"name": SAID, "object": SAID, "cpu_share": 0.1, **SHARE}]
    plain["lines"] = [
        {"function": SAID, "object": SAID, "cpu_share": 0.1, "file": "/srv/pathmark/a.c", "line": 3, **SHARE}
    ]
    place = {"name": SAID, "file": "/srv/pathmark/a.py", "line": 3, "within": 0.1, "busy_share": 0.1, **SHARE}
    code = {"versions": ["3.11"], "reads": 5, "torn": 0, "nameless_share": 0, "refused": SAID}
    plain["python"] = {**code, "functions": [place], "lines": [place]}
    plain["stacks"] = [{"name": "compute", "frames": [SAID, "main"], "share": 0.1}]
    return msgspec.convert(plain, Explained)


def found_in(text: str) -> list[str]:
    return [mark for mark in MARKS if mark in text.lower()]


def test_an_anonymous_result_names_nobody_in_any_form(marked: Explained) -> None:
    plain = msgspec.json.encode(marked)
    assert found_in(plain.decode()) == list(MARKS)
    judgement = judge.Judgement(notes=(SAID,))
    tried = Measured(name="x", says=SAID, how=SAID, rounds=1, failed=SAID)
    proof = Proof(
        baseline="warm", runs=1, input_files=1, input_bytes=1, experiments=(tried,), left_out=(SAID,)
    )
    explained, shared, judged, proved = anonymous(marked, plain, judgement, proof)
    assert found_in(shared.decode()) == []
    assert found_in(repr((explained, judged, proved))) == []
    page = html.render(document(explained, Machine({}), {}, judged, proved))
    assert found_in(page) == []
    assert re.search(r"path-\d", page)
    assert found_in(chrome(explained).decode()) == []
    assert found_in(firefox(explained).decode()) == []
    listed = [*sentences(explained, judged, proved), *processes(explained), *facts(explained)]
    listed += [line for rows, about in places(explained, "line") for line in (*rows, about)]
    assert len(listed) > 5
    assert found_in("\n".join(Screen().fit(line) for line in listed)) == []


def test_an_anonymous_result_has_every_figure(marked: Explained) -> None:
    explained, _, _, _ = anonymous(marked, msgspec.json.encode(marked), judge.Judgement(), None)
    assert explained.categories == marked.categories
    assert explained.wall_s == marked.wall_s
    assert explained.files.rows[0].read == marked.files.rows[0].read
    assert explained.program.arguments[1] == "file-1", "a file is known by the end of its path"


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, SimpleNamespace]:
    """A program with a password on its command line and a file of the user's, plainly and anonymously."""
    out = {}
    for hidden in (False, True):
        folder = tmp_path_factory.mktemp("explained") / "pathmark"
        folder.mkdir()
        (folder / "filemark.bin").write_bytes(bytes(1 << 20))
        names = {kind: folder.parent / f"where.{kind}" for kind in ("json", "html", "trace", "firefox")}
        options = ["--no-limits", "--level", "3", *(["--anonymous"] if hidden else [])]
        for kind, path in names.items():
            options += [f"--{kind}", str(path)]
        script = 'exec 3< "$1"; sleep 0.3; cat <&3 > /dev/null'
        program = ["/bin/sh", "-c", script, "sh", str(folder / "filemark.bin")]
        program += ["--password", "secretmark", "--token=secretmark", "https://u:secretmark@h/"]
        done = explain(*options, "--", *program)
        assert done.returncode == 0, done.stderr
        texts = {kind: path.read_text(encoding="utf-8") for kind, path in names.items()}
        out[hidden] = SimpleNamespace(reported=done.stderr, folder=folder, **texts)
    return out


@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("form", ["reported", "json", "html", "trace", "firefox"])
def test_a_password_on_the_command_line_is_nowhere(
    shown: dict[bool, SimpleNamespace], form: str, *, hidden: bool
) -> None:
    text = getattr(shown[hidden], form)
    assert len(text) > 500
    assert "secretmark" not in text


def test_a_masked_option_keeps_its_name(shown: dict[bool, SimpleNamespace]) -> None:
    arguments = json.loads(shown[False].json)["program"]["arguments"]
    file = str(shown[False].folder / "filemark.bin")
    assert arguments[3:] == ["sh", file, "--password", "***", "--token=***", "https://u:***@h/"]


@pytest.mark.parametrize("form", ["reported", "json", "html", "trace", "firefox"])
def test_an_anonymous_explanation_names_no_file_of_the_user(
    shown: dict[bool, SimpleNamespace], form: str
) -> None:
    text = getattr(shown[True], form)
    assert len(text) > 500
    assert "pathmark" not in text
    assert "filemark" not in text
