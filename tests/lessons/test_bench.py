"""The bench: order, arithmetic, what is done where something cannot be done, and what is left behind."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.leftovers import contents

from latlab.lessons import bench as benches
from latlab.lessons import folder as folders
from latlab.lessons import memory, words
from latlab.lessons.bench import Bench, Cannot, Times, in_turns, reason_of
from latlab.lessons.figures import Cell
from latlab.lessons.folder import LOCK_TEXT, PREFIX, fresh_folder, sweep
from latlab.lessons.machine import file_system
from latlab.lessons.memory import available_memory

unix = pytest.mark.skipif(not hasattr(os, "getuid"), reason="folders are swept on Unix only")


def test_arms_take_turns_in_going_first(tmp_path: Path) -> None:
    order: list[str] = []

    def arm(name: str) -> float:
        order.append(name)
        return float(len(order))

    with Bench(directory=tmp_path) as bench:
        found = bench.times({"a": lambda: arm("a"), "b": lambda: arm("b")}, 4)
    assert order == ["a", "b", "b", "a", "a", "b", "b", "a"]
    assert found["a"].values == (1, 4, 5, 8)


@pytest.mark.parametrize(("round_s", "rounds"), [(1.0, 5), (2.0, 3), (60.0, 2)])
def test_no_round_is_begun_that_would_end_too_late_and_two_are_done_in_any_case(
    monkeypatch: pytest.MonkeyPatch, round_s: float, rounds: int
) -> None:
    now = [0.0]
    monkeypatch.setattr(benches, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    done = []
    for item in in_turns("ab", 5, within=7.0):
        done.append(item)
        now[0] += round_s / 2
    assert "".join(done) == "abbaabbaab"[: 2 * rounds]


def test_a_ratio_is_that_of_the_medians_and_its_spread_that_of_the_pairs() -> None:
    cell = Times((4.0, 6.0, 10.0)).over(Times((2.0, 2.0, 4.0)))
    assert (cell.value, cell.low, cell.high, cell.repeats) == (3.0, 2.0, 3.0, 3)
    assert cell.shown == "3.00x (2.00x – 3.00x)"


def test_times_of_one_cell_are_written_in_one_way() -> None:
    assert Times((62.9, 37.5, 254.0)).cell().shown == "62.9 s (37.5 s – 254 s)"
    assert Times((1041.0, 815.0, 2702.0)).cell().shown == "17 min 21 s (13 min 35 s – 45 min 2 s)"
    # The largest of these happens to be a whole number of thousands.
    memory = Cell("bytes", 231_735_296.0, 231_731_200.0, 231_736_000.0, 3)
    assert memory.shown == "221 MiB"
    assert Cell("bytes", 2e6, 1e6, 4e6, 3).shown == "2 MB (1 MB – 4 MB)"


def test_who_waits_is_shown_how_far_it_is_where_nothing_was_said_for_long(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    now = [0.0]
    monkeypatch.setattr(benches, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    for round_s, reported in (
        (2.0, []),
        (20.0, ["round 2 of 3, about 40 s left", "round 3 of 3, about 20 s left"]),
    ):
        said: list[str] = []
        with Bench(directory=tmp_path, say=said.append) as bench:
            for _ in bench.turns("ab", 3):
                now[0] += round_s / 2
        assert said == reported


def test_a_rate_is_fastest_where_the_time_is_shortest() -> None:
    cell = Times((1.0, 2.0, 4.0)).rate(8e9)
    assert (cell.value, cell.low, cell.high) == (4e9, 2e9, 8e9)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (Cannot("no compiler was found"), "no compiler was found"),
        (MemoryError(), "not enough memory"),
        (OSError(errno.ENOSPC, "No space left on device"), "disk is full"),
        (OSError(errno.EROFS, "Read-only file system"), "cannot be written"),
        (subprocess.TimeoutExpired("x", 5), "longer than 5 s"),
        (subprocess.CalledProcessError(3, "x", stderr="one\nlast words\n"), "ended with 3: last words"),
        (ImportError("No module named 'numpy'"), "numpy"),
    ],
)
def test_what_cannot_be_done_is_named_and_the_rest_goes_on(error: Exception, reason: str) -> None:
    def work() -> int:
        raise error

    with Bench() as bench:
        assert bench.attempt("it", work) is None
        assert bench.attempt("another", lambda: 2) == 2
        assert reason in bench.why("it")
        assert [missing.what for missing in bench.missing] == ["it"]
        assert bench.why("another") == ""


def test_a_mistake_in_a_lesson_is_not_taken_for_a_limit_of_the_machine() -> None:
    def work() -> int:
        raise ZeroDivisionError

    with Bench() as bench, pytest.raises(ZeroDivisionError):
        bench.attempt("it", work)


def test_room_is_checked_before_anything_is_written(tmp_path: Path) -> None:
    with Bench(directory=tmp_path) as bench, pytest.raises(Cannot, match="no room"):
        bench.room(1 << 60)


def test_its_folder_goes_also_when_the_lesson_fails(tmp_path: Path) -> None:
    def fail() -> None:
        with Bench(directory=tmp_path) as bench:
            (bench.folder / "text").write_bytes(b"x")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert not list(tmp_path.iterdir())


def leave(directory: Path, name: str = f"{PREFIX}abcd1234", lock: bytes | None = LOCK_TEXT) -> Path:
    """A lesson's folder as a kill leaves it, or one that lacks something of it."""
    left = directory / name
    (left / "pair-10").mkdir(parents=True)
    (left / "pair-10/small_3.bin").write_bytes(b"x")
    (left / "text").write_bytes(b"x")
    if lock is not None:
        (left / "lock").write_bytes(lock)
    return left


@unix
def test_what_a_killed_lesson_left_is_swept_and_what_a_running_one_holds_is_not(tmp_path: Path) -> None:
    nested = leave(leave(tmp_path))
    (nested / "list_walk.c").write_bytes(b"x")
    (tmp_path / f"{PREFIX}00000000").mkdir()
    with Bench(directory=tmp_path) as bench:
        held = bench.folder
        assert sweep(tmp_path) == 0
        assert [path.name for path in tmp_path.iterdir()] == [held.name]
    assert not list(tmp_path.iterdir())


@unix
@pytest.mark.parametrize(
    ("name", "lock"),
    [
        (f"{PREFIX}notes", LOCK_TEXT),
        (f"{PREFIX}ABCD1234", LOCK_TEXT),
        (f"{PREFIX}abcd12345", LOCK_TEXT),
        (f"{PREFIX}abcd1234", b""),
        (f"{PREFIX}abcd1234", LOCK_TEXT + b"\n"),
        (f"{PREFIX}abcd1234", None),
    ],
)
def test_a_folder_of_the_users_stays_whatever_it_is_called(
    tmp_path: Path, name: str, lock: bytes | None
) -> None:
    leave(tmp_path, name, lock)
    before = contents(tmp_path)
    with Bench(directory=tmp_path) as bench:
        assert bench.folder.is_dir()
    assert contents(tmp_path) == before


@unix
def test_what_the_user_put_into_a_lessons_folder_stays_with_the_folder_and_its_lock(tmp_path: Path) -> None:
    left = leave(tmp_path)
    precious = tmp_path / "precious"
    precious.write_text("three years")
    (left / "pair-10/thesis.txt").write_text("three years")
    (left / "blocks").symlink_to(precious)
    (left / "calls").hardlink_to(precious)
    os.mkfifo(left / "disk")
    assert sweep(tmp_path) == 0
    there = {str(path.relative_to(left)) for path in left.rglob("*")}
    assert there == {"lock", "blocks", "calls", "disk", "pair-10", "pair-10/thesis.txt"}
    assert precious.read_text() == "three years"


@unix
def test_folders_of_a_lesson_have_names_of_their_own_and_ext4_is_asked_to_keep_them_apart(
    tmp_path: Path,
) -> None:
    with Bench(directory=tmp_path) as bench:
        made = [fresh_folder(bench.folder, "steps") for _ in range(3)]
        assert len({folder.name for folder in made}) == 3
        (made[0] / "small_0.bin").write_bytes(b"x")
        if file_system(tmp_path).startswith("ext4"):
            reported = subprocess.run(
                ["lsattr", "-d", bench.folder], capture_output=True, check=True, text=True, timeout=60
            ).stdout
            assert "T" in reported.split()[0]
    assert not list(tmp_path.iterdir())


@unix
@pytest.mark.parametrize("make", ["mkfifo", "mkdir", "symlink"])
def test_a_lock_that_is_no_file_is_no_lock(tmp_path: Path, make: str) -> None:
    left = leave(tmp_path, lock=None)
    (tmp_path / "text").write_bytes(LOCK_TEXT)
    getattr(os, make)(*([tmp_path / "text"] if make == "symlink" else []), left / "lock")
    assert sweep(tmp_path) == 0
    assert (left / "text").exists()


@unix
def test_a_folder_that_is_swept_before_it_has_a_lock_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    real = tempfile.mkdtemp

    def swept_at_once(prefix: str, dir: Path) -> str:  # noqa: A002 - as mkdtemp has it
        made.append(real(prefix=prefix, dir=dir))
        if len(made) < 3:
            assert sweep(tmp_path) == 1
        return made[-1]

    monkeypatch.setattr(tempfile, "mkdtemp", swept_at_once)
    with Bench(directory=tmp_path) as bench:
        assert str(bench.folder) == made[2]
        assert (bench.folder / "lock").read_bytes() == LOCK_TEXT
    assert not list(tmp_path.iterdir())


@unix
def test_where_there_are_no_locks_a_folder_is_never_swept_and_still_goes_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folders, "_lock", lambda _descriptor: False)
    with Bench(directory=tmp_path) as bench:
        (bench.folder / "text").write_bytes(b"x")
        monkeypatch.undo()
        assert sweep(tmp_path) == 0
        assert (bench.folder / "text").exists()
    assert not list(tmp_path.iterdir())


def test_a_killed_lesson_holds_its_folder_no_longer(tmp_path: Path) -> None:
    program = (
        "import os, sys\n"
        "from latlab.lessons.bench import Bench\n"
        f"bench = Bench(directory={str(tmp_path)!r})\n"
        "bench.folder\n"
        "os.kill(os.getpid(), 9)\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == -9
    assert len(list(tmp_path.iterdir())) == 1
    assert sweep(tmp_path) == 1


def test_a_folder_elsewhere_is_held_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with Bench(directory=tmp_path / "gone") as bench:
        with bench.scratch() as place:
            assert place.parent == tmp_path
            assert sweep(tmp_path) == 0
            assert place.is_dir()
        assert not list(tmp_path.iterdir())


def test_the_reason_of_a_refused_write_names_the_option_that_helps() -> None:
    assert "--dir" in reason_of(PermissionError(errno.EACCES, "Permission denied"))


def test_memory_that_may_be_used_is_known_here_and_bounded_by_the_limit() -> None:
    found = available_memory()
    if sys.platform == "linux":
        assert found is not None
        assert found > 1 << 20
    else:
        assert found is None


def test_timed_work_is_timed() -> None:
    assert benches.timed(lambda: time.sleep(0.01)) >= 0.01


@pytest.mark.parametrize(
    ("line", "folder", "limit", "used", "prefix"),
    [
        ("0::/of/ours", "of", "max", "current", ""),
        ("0::/not/visible", "", "max", "current", ""),
        ("4:memory:/of/ours", "memory/of/ours", "limit_in_bytes", "usage_in_bytes", "total_"),
    ],
)
def test_the_memory_of_a_control_group_is_a_limit_and_files_in_it_can_go(
    tmp_path: Path, line: str, folder: str, limit: str, used: str, prefix: str
) -> None:
    place = tmp_path / folder
    place.mkdir(parents=True, exist_ok=True)
    (place / f"memory.{limit}").write_text("1000\n")
    (place / f"memory.{used}").write_text("900\n")
    (place / "memory.stat").write_text(f"{prefix}inactive_file 300\n{prefix}active_file 100\n")
    listed = tmp_path / "listed"
    listed.write_text(f"7:cpu:/else\n{line}\n")
    assert memory._left_in_groups(listed, tmp_path) == [500]
    (place / f"memory.{limit}").write_text("max\n")
    assert memory._left_in_groups(listed, tmp_path) == []


@pytest.mark.parametrize(("count", "left_out"), [(1, 0), (5, 0), (8, 0), (9, 1), (12, 2), (20, 5), (100, 39)])
def test_the_interval_of_a_median_leaves_out_as_many_at_each_side_as_its_chance_allows(
    count: int, left_out: int
) -> None:
    """Ranks as in tables of the sign test."""
    values = [float(number) for number in range(count)]
    assert benches.interval(values[::-1]) == (left_out, count - 1 - left_out)


def test_one_disturbed_round_of_nine_widens_no_figure() -> None:
    times, others = Times((1.0,) * 8 + (50.0,)), Times((2.0,) * 9)
    for cell in (times.cell(), times.rate(1.0), others.over(times)):
        assert cell.low == cell.high == cell.value
    few = Times(times.values[3:])
    assert few.cell().high == 50.0
    assert others.over(few).low == 2.0 / 50.0


def test_of_a_figure_whose_spread_is_twofold_only_the_spread_is_said() -> None:
    wide, close = (Cell("ratio", 20.0, 15.0, high, 5) for high in (50.0, 29.0))
    assert words.ratio(wide) == "15 to 50 times"
    assert words.ratio(close) == "20 times (15 – 29)"
    assert words.said(Cell("share", 0.05, 0.03, 0.09, 5)) == "3.0 % to 9.0 %"
    assert words.said(close) == close.shown
    assert words.said(Cell("share", 0.05, -0.03, 0.09, 5)).startswith("5.0 %"), "its sign is said elsewhere"
