from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from latlab.errors import UserError
from latlab.run import saving
from latlab.run.saving import save


def test_a_new_file_is_as_readable_as_any_and_nothing_stays_beside_it(tmp_path: Path) -> None:
    save(tmp_path / "a", b"whole")
    (tmp_path / "b").write_bytes(b"")
    assert (tmp_path / "a").read_bytes() == b"whole"
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "b").stat().st_mode
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_a_file_system_without_unnamed_files_gets_the_file_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saving, "open_unnamed", lambda folder: -1)
    assert save(tmp_path / "a", b"whole").read_bytes() == b"whole"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_an_older_file_is_replaced_and_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"older and longer")
    (tmp_path / "a").chmod(0o604)
    (tmp_path / "link").symlink_to("a")
    save(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "a").read_bytes() == b"new"
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o604
    assert len(list(tmp_path.iterdir())) == 2


def test_a_pipe_is_written_and_stays_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append((tmp_path / "pipe").read_bytes()), daemon=True)
    reader.start()
    save(tmp_path / "pipe", b"through")
    reader.join(30)
    assert got == [b"through"]
    assert (tmp_path / "pipe").is_fifo()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_what_cannot_be_written_is_said_in_one_line(tmp_path: Path) -> None:
    for target in (Path("/dev/full"), tmp_path / "absent" / "a", tmp_path / "a\x1b[31m\0"):
        with pytest.raises(UserError, match="cannot write") as error:
            save(target, b"x")
        assert str(error.value).isprintable()
    assert not list(tmp_path.iterdir())


def test_a_failed_replacement_leaves_the_older_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_bytes(b"older")

    def refuse(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(UserError, match="No space left"):
        save(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"older"
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("kind", ["file", "link", "pipe"])
@pytest.mark.parametrize("unnamed", [True, False])
def test_what_is_not_to_be_replaced_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, unnamed: bool
) -> None:
    if not unnamed:
        monkeypatch.setattr("latlab.run.saving.open_unnamed", lambda _folder: -1)
    target, other = tmp_path / "report.html", tmp_path / "other"
    assert save(target, b"first", replace=False).read_bytes() == b"first"
    if kind != "file":
        target.unlink()
        target.symlink_to(other) if kind == "link" else os.mkfifo(target)
    with pytest.raises(UserError, match=r"report\.html already exists"):
        save(target, b"second", replace=False)
    assert kind != "file" or target.read_bytes() == b"first"
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


@pytest.mark.skipif(sys.platform != "linux", reason="files without a name are Linux's")
def test_a_kill_before_a_replacement_is_whole_leaves_the_older_file_alone(tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    target.write_bytes(b"older")
    program = (
        "import os, sys; from pathlib import Path; from latlab.run import saving;"
        "saving.give_name = lambda *_: os.kill(os.getpid(), 9);"
        "saving.save(Path(sys.argv[1]), b'newer' * 100_000)"
    )
    killed = subprocess.run([sys.executable, "-c", program, str(target)], check=False)
    assert killed.returncode == -9
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    assert target.read_bytes() == b"older"
