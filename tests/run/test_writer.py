from __future__ import annotations

import os
from pathlib import Path

import pytest

from latlab.errors import RunFileError
from latlab.run import reader, writer
from latlab.run.writer import RunWriter

ROUNDS = reader.read(Path(__file__).resolve().parent.parent / "data" / "run-rounds.latlab.jsonl")


@pytest.fixture(params=["unnamed files", "no unnamed files", "unnamed files that cannot be named"])
def system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The three ways in which a system lets a file be made."""
    if request.param == "no unnamed files":
        monkeypatch.setattr(writer, "open_unnamed", lambda folder: -1)
    elif request.param == "unnamed files that cannot be named":

        def refuse(descriptor: int, path: Path) -> None:
            raise PermissionError

        monkeypatch.setattr(writer, "give_name", refuse)


@pytest.mark.usefixtures("system")
def test_the_file_appears_with_its_header_and_is_a_readable_run_after_every_line(tmp_path: Path) -> None:
    path = tmp_path / "run.latlab.jsonl"
    with RunWriter(path) as file:
        assert not list(tmp_path.iterdir())
        file.header(ROUNDS.header)
        assert reader.read(path).header == ROUNDS.header
        for number, record in enumerate(ROUNDS.lines[:3], 1):
            file.record(record)
            assert len(reader.read(path).lines) == number
        assert ROUNDS.footer is not None
        file.footer(ROUNDS.footer)
    assert reader.read(path).footer == ROUNDS.footer
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.usefixtures("system")
def test_another_file_is_never_replaced(tmp_path: Path) -> None:
    path = tmp_path / "run.latlab.jsonl"
    late = RunWriter(path)
    path.write_text("mine")
    with pytest.raises(RunFileError, match="already exists"):
        RunWriter(path)
    with late, pytest.raises(RunFileError, match="already exists"):
        late.header(ROUNDS.header)
    assert path.read_text() == "mine"
    (tmp_path / "dangling").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RunFileError, match="already exists"):
        RunWriter(tmp_path / "dangling")


@pytest.mark.usefixtures("system")
def test_a_name_that_the_store_made_gets_a_suffix_when_it_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "run.latlab.jsonl"
    for expected in ("run.latlab.jsonl", "run-2.latlab.jsonl", "run-3.latlab.jsonl"):
        with RunWriter(path, may_rename=True) as file:
            file.header(ROUNDS.header)
            assert file.path.name == expected


def test_a_folder_that_is_missing_or_no_folder_is_said_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(RunFileError, match="there is no folder"):
        RunWriter(tmp_path / "missing" / "run.latlab.jsonl")
    (tmp_path / "file").write_text("")
    with pytest.raises(RunFileError, match="is not a folder"):
        RunWriter(tmp_path / "file" / "run.latlab.jsonl")


def test_a_record_keeps_what_is_not_known_here(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "run") as file:
        file.header(ROUNDS.header)
        file.record(
            b'{"probe":"x","method":1,"unit":"ns","kind":"derived","stopped_by":"planned","novel":[1]}'
        )
    assert b'"novel":[1]' in (tmp_path / "run").read_bytes()
    assert reader.read(tmp_path / "run").records[0].probe == "x"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_lines_that_a_full_disk_refused_are_written_when_there_is_room_again(tmp_path: Path) -> None:
    path = tmp_path / "run"
    with RunWriter(path) as file:
        file.header(ROUNDS.header)
        good, file._descriptor = file._descriptor, os.open("/dev/full", os.O_WRONLY)
        file.record(ROUNDS.lines[0])
        assert file.error == "No space left on device"
        os.close(file._descriptor)
        file._descriptor = good
        file.record(ROUNDS.lines[1])
        assert not file.error
    assert list(reader.read(path).lines) == list(ROUNDS.lines[:2])
