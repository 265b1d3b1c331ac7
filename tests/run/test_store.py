from __future__ import annotations

import os
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
import zstandard
from tests.leftovers import contents

from latlab.errors import UserError
from latlab.run import reader
from latlab.run.run import Run
from latlab.run.store import Store, new_id

ROUNDS = reader.read(Path(__file__).resolve().parent.parent / "data" / "run-rounds.latlab.jsonl")


def add(folder: Path, run_id: str, started: str = "2026-11-21T00:00:00+00:00") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    header = msgspec.structs.replace(ROUNDS.header, id=run_id, started=started)
    return Run.of_lines(header, ROUNDS.lines[:1], ROUNDS.footer).save(folder / f"{run_id}.latlab.jsonl")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path


def test_runs_are_kept_under_the_users_data_folder(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Store().folder == home / ".local/share/latlab/runs"
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    assert Store().folder == home / ".local/share/latlab/runs"
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "data"))
    assert Store().folder == home / "data/latlab/runs"
    assert Store().notice == ""


def test_without_a_usable_home_the_run_goes_to_the_current_folder_and_that_is_said_once(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "file").write_text("")
    monkeypatch.setenv("HOME", str(home / "file"))
    shelf = Store()
    with shelf.create("a") as file:
        file.header(ROUNDS.header)
    assert file.path == home / "work" / "a.latlab.jsonl"
    assert "cannot be written (Not a directory): this run is kept in" in shelf.notice
    assert Store().resolve("last") == file.path
    assert [path.name for path in (home / "work").iterdir()] == [file.path.name]


def test_without_a_usable_current_folder_the_run_goes_to_a_temporary_one(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "file").write_text("")
    monkeypatch.setenv("HOME", str(home / "file"))
    monkeypatch.setattr(Path, "cwd", classmethod(lambda cls: cls("/proc/self")))
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(home / "tmp"))
    (home / "tmp").mkdir()
    with Store().create("a") as file:
        file.header(ROUNDS.header)
    assert file.path.parent.parent == home / "tmp"
    assert file.path.parent.stat().st_mode & 0o077 == 0
    assert Store().resolve("last") == file.path


def test_a_temporary_folder_that_somebody_else_prepared_is_not_used(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(home))
    monkeypatch.setattr(Path, "cwd", classmethod(lambda cls: cls("/proc/self")))
    monkeypatch.setenv("HOME", str(home / "absent"))
    add(home / "work", "planted")
    (home / f"latlab-{os.getuid()}").symlink_to(home / "work")
    with pytest.raises(UserError, match="no run"):
        Store().resolve("last")
    with Store().create("a") as file:
        file.header(ROUNDS.header)
    assert file.path.parent not in {home / f"latlab-{os.getuid()}", home / "work"}


def test_looking_for_a_run_makes_no_folder(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(home))
    with pytest.raises(UserError, match="latlab measure"):
        Store().resolve("last")
    assert sorted(path.name for path in home.rglob("*")) == ["work"]


def test_a_run_in_its_usual_place_makes_no_temporary_folder(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(home))
    with Store().create("a") as file:
        file.header(ROUNDS.header)
    assert not list(home.glob("latlab-*"))


def test_a_home_that_does_not_exist_is_not_made(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(home / "absent"))
    shelf = Store()
    with shelf.create("a") as file:
        file.header(ROUNDS.header)
    assert not (home / "absent").exists()
    assert shelf.notice == f"there is no home folder: this run is kept in {home / 'work'}"


def test_last_is_the_newest_by_its_time_not_by_its_name(home: Path) -> None:
    folder = Store().folder
    newest = add(folder, "a", "2026-11-21T03:00:00+02:00")
    add(folder, "b", "2026-11-21T00:30:00+00:00")
    add(folder, "c", "2026-11-21T02:00:00+03:00")
    assert Store().resolve("last") == newest
    assert [entry.id for entry in Store().entries()] == ["c", "b", "a"]


def test_a_run_is_named_by_id_by_its_beginning_or_by_path(home: Path) -> None:
    folder = Store().folder
    one, two = add(folder, "2026-11-21T000000-abc"), add(folder, "2026-11-22T000000-abd")
    shelf = Store()
    assert shelf.resolve("2026-11-21T000000-abc") == one
    assert shelf.resolve("2026-11-22") == two
    assert shelf.resolve(two) == two
    assert shelf.resolve(f"./{one.name}") == Path(one.name)
    Path("here").write_text("")
    assert shelf.resolve("here") == Path("here")


def test_an_id_that_is_the_beginning_of_another_means_itself(home: Path) -> None:
    folder = Store().folder
    one = add(folder, "abc")
    add(folder, "abcd")
    assert Store().resolve("abc") == one


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("2026", "2 runs begin with '2026'"),
        ("nothing", "no run 'nothing'"),
        ("\x1b[31m", "no run"),
        ("", "no run"),
        ("a b", "no run"),
    ],
)
def test_a_name_that_means_no_run_or_several_is_said_in_one_line(home: Path, name: str, said: str) -> None:
    add(Store().folder, "2026-a")
    add(Store().folder, "2026-b")
    with pytest.raises(UserError, match=said) as error:
        Store().resolve(name)
    assert str(error.value).isprintable()


def test_last_without_any_run_says_how_to_make_one(home: Path) -> None:
    with pytest.raises(UserError, match="latlab measure"):
        Store().resolve("last")


def test_a_run_that_was_cut_short_is_found(home: Path) -> None:
    path = add(Store().folder, "a")
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[0])
    assert Store().resolve("last") == path


def test_a_packed_run_is_found_by_its_first_line(home: Path) -> None:
    path = add(Store().folder, "a")
    packed = path.with_name("b.latlab.jsonl.zst")
    packed.write_bytes(zstandard.compress(path.read_bytes()))
    path.unlink()
    (entry,) = Store().entries()
    assert (entry.path, entry.id, entry.size) == (packed, "a", packed.stat().st_size)


def test_files_that_are_no_runs_are_not_listed_and_stay(home: Path) -> None:
    folder = Store().folder
    whole = add(folder, "a").read_bytes()
    (folder / "empty.latlab.jsonl").write_bytes(b"")
    (folder / "half.latlab.jsonl").write_bytes(whole[:40])
    (folder / "zeros.latlab.jsonl").write_bytes(bytes(5000))
    (folder / "packed.latlab.jsonl.zst").write_bytes(b"\x28\xb5\x2f\xfd" + b"x" * 40)
    (folder / "folder.latlab.jsonl").mkdir()
    (folder / "loop.latlab.jsonl").symlink_to("loop.latlab.jsonl")
    (folder / "gone.latlab.jsonl").symlink_to(home / "gone")
    (folder / "secret.latlab.jsonl").write_bytes(whole)
    (folder / "secret.latlab.jsonl").chmod(0)
    (folder / "notes.txt").write_text("mine")
    os.mkfifo(folder / "pipe.latlab.jsonl")
    before = contents(home)
    ids = [entry.id for entry in Store().entries()]
    assert ids == ["a"] * (2 if os.access(folder / "secret.latlab.jsonl", os.R_OK) else 1)
    assert contents(home) == before


def test_ids_sort_by_time_and_do_not_repeat() -> None:
    moment = datetime(2026, 11, 21, 0, 30, 12, tzinfo=UTC)
    assert new_id(moment).startswith("2026-11-21T003012-")
    assert len({new_id(moment) for _ in range(50)}) == 50
