"""Ten files: the arithmetic, the published figures, every failure by itself, no path and no network."""

from __future__ import annotations

import ctypes
import errno
import json
import os
import platform
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.robust.test_storage_degraded import refuse
from tests.some import some

from latlab import lessons
from latlab.errors import UserError
from latlab.lessons import distance
from latlab.lessons.bench import Bench, Cannot, Times
from latlab.lessons.ends import End
from latlab.lessons.experiments import downloads as lesson
from latlab.lessons.experiments.downloads import transfers
from latlab.lessons.figures import Cell
from latlab.lessons.model import Result
from latlab.lessons.programs import downloads, downloads_server

UNSHARE = {"x86_64": 272, "aarch64": 97}.get(platform.machine(), -1)


@pytest.fixture
def server() -> Iterator[str]:
    """The lesson's own server, in this process."""
    own = downloads_server.Server("127.0.0.1", origin_s=0.05)
    thread = threading.Thread(target=own.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{own.server_port}"
    own.over.set()
    own.shutdown()
    own.server_close()
    thread.join()


def test_the_ratios_are_those_of_the_timings_shown(result: Result) -> None:
    checked = []

    def near(ratio: str, above: str, below: str) -> None:
        cells = [result[name] for name in (ratio, above, below)]
        if cells[0].number is not None:
            assert cells[0].number == pytest.approx((cells[1].number or 0) / (cells[2].number or 1)), ratio
            checked.append(ratio)

    for column in ("python", "requests", "native"):
        near(*(f"original.{row}.{column}" for row in ("speed_up_ratio", "sequential", "pool")))
    for workers in range(1, 11):
        near(f"workers.w{workers}.speed_up_ratio", "workers.w1.seconds", f"workers.w{workers}.seconds")
    for way in ("download", "upload"):
        near(*(f"shapes.{row}.{way}" for row in ("many_ratio", "many", "one")))
        near(f"gigabyte.thousand_ratio.{way}", f"gigabyte.thousand.{way}", f"gigabyte.one.{way}")
    near(*(f"second.{row}.python" for row in ("as_document_ratio", "sequential_cold", "pool_warm")))
    near(*(f"second.{row}.python" for row in ("reversed_ratio", "sequential_warm", "pool_cold")))
    near(*(f"connections.{row}.loopback" for row in ("new_ratio", "sequential", "pool")))
    near(*(f"connections.{row}.python" for row in ("mixed_ratio", "sequential", "pool_kept")))
    assert len(checked) >= 10


def test_the_published_figures_are_as_printed(result: Result) -> None:
    printed = {row.name: row.cells["python"].published for row in result.table("original").rows}
    assert {name: (each.text, each.value) for name, each in printed.items() if each} == {
        "sequential": ("3.225 s", 3.225),
        "pool": ("0.285 s", 0.285),
        "speed_up_ratio": ("3.225 s / 0.285 s", pytest.approx(11.316, abs=1e-3)),
    }
    orders = {
        way: [result[f"order.place_{place}.{way}_published"].value for place in range(1, 11)]
        for way in ("sequential", "pool")
    }
    assert orders["sequential"] == [f"seq_{mass}.h5" for mass in range(10, 20)]
    assert " ".join(map(str, orders["pool"])) == (
        "par_11.h5 par_12.h5 par_15.h5 par_13.h5 par_10.h5 par_14.h5 par_16.h5 par_19.h5 par_17.h5 par_18.h5"
    )
    assert result["order.overtaken.pool_published"].value == 5


def test_ten_files_by_so_many_workers_take_whole_turns() -> None:
    assert [lesson.most(workers) for workers in (1, 2, 4, 5, 6, 9, 10)] == [1, 2, 10 / 3, 5, 5, 5, 10]


def test_what_the_text_says_of_the_published_figures_follows_from_them(result: Result) -> None:
    said = " ".join(each.found for each in result.misled)
    assert "6 x 0.285 = 1.71 s" in said
    assert f"{3.225 / 1.71:.1f} times as fast by itself" in said


def test_every_file_was_done_once_in_both_ways(result: Result) -> None:
    for way in ("sequential", "pool"):
        names = [result[f"order.place_{place}.{way}"].value for place in range(1, 11)]
        assert sorted(map(str, names)) == [f"file_{number}" for number in range(10, 20)]
    assert result["order.overtaken.sequential"].value == 0
    (drawn,) = [picture for picture in result.pictures if picture.name == "completion"]
    assert len(drawn.marks) == 20
    for mark in drawn.marks:
        assert mark.low is not None
        assert mark.high is not None
        assert mark.value == pytest.approx(mark.high - mark.low)


def test_an_overtaken_file_is_one_that_a_later_one_was_done_before() -> None:
    assert lesson.overtaken(["file_10", "file_11", "file_12"]) == 0
    assert lesson.overtaken(["file_12", "file_10", "file_11"]) == 2


def test_each_failure_stands_at_its_file_and_the_others_come(result: Result) -> None:
    reported = {row.name: str(row.cells["urllib"].value) for row in result.table("errors").rows[:10]}
    assert "404" in reported["file_12"]
    assert "ConnectionResetError" in reported["file_15"]
    assert "imeout" in reported["file_17"]
    assert sum("compared" in text for text in reported.values()) == 7


def test_a_404_that_nobody_asks_about_becomes_a_file(result: Result) -> None:
    pytest.importorskip("requests")
    assert "no error: the error page" in str(result["errors.as_published.requests"].value)


def test_the_gigabyte_is_estimated_and_says_from_what(result: Result) -> None:
    cells = [cell for row in result.table("gigabyte").rows for cell in row.cells.values()]
    for cell in some(cell for cell in cells if cell.number is not None):
        assert "estimate" in cell.why


def test_the_estimate_of_one_large_file_is_its_largest_and_the_rest_at_the_rate_beyond() -> None:
    way = distance.Way("loopback", "here", client=None)  # type: ignore[arg-type]
    found = transfers.Gigabyte(
        way, {"download": {10**6: Times((0.5,)), 10**7: Times((1.4,)), 10_000: Times((0.04,))}}
    )
    # 9 MB took 0.9 s: 10 MB/s for the 990 MB that are left.
    assert found.estimate("download", transfers.GIGABYTE).number == pytest.approx(1.4 + 99)
    assert found.estimate("download", 10_000).number == pytest.approx(4000)
    still = transfers.Gigabyte(way, {"download": {10**6: Times((0.5,)), 10**7: Times((0.5,))}})
    assert still.estimate("download", transfers.GIGABYTE).number is None


def test_every_figure_over_an_emulated_distance_says_so(result: Result) -> None:
    for where in (
        "original.pool.python",
        "workers.w6.seconds",
        "shapes.one.upload",
        "second.pool_warm.python",
    ):
        assert (
            result[where].why.startswith("emulated: 5 ms round trip") or "valid for time" in result[where].why
        )
    assert "emulated" not in result["connections.pool.loopback"].why


def test_ten_files_take_ten_round_trips_or_waits_of_the_server_at_least(result: Result) -> None:
    assert (result["original.sequential.python"].low or 0) >= 10 * 0.005


def test_uploads_count_what_came(server: str) -> None:
    post = downloads.post_by_urllib
    assert downloads.uploading(post, f"{server}/sink", b"x" * 100_000, 5.0)("a") == 100_000
    lost = downloads.uploading(lambda *_: b"7\n", f"{server}/sink", b"12345678", 5.0)
    assert "7 bytes of 8" in downloads.one(lost, "a", 0.0)["error"]


def test_a_download_that_is_not_what_the_server_has_is_noticed(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    end, urls = End(), {"a": f"{server}/bytes/1000", "b": f"{server}/bytes/1000"}
    reported = end.transfer(urls, "urllib", 5.0, workers=2, folder=str(tmp_path), file_bytes=1000)
    assert [each["size"] for each in reported["done"]] == [1000, 1000]
    assert not list(tmp_path.iterdir())
    with pytest.raises(ValueError, match="differ from the server's"):
        end.transfer(urls, "urllib", 5.0, file_bytes=999)
    monkeypatch.setattr(downloads_server, "BLOCK", b"\0" * (256 << 10))
    monkeypatch.setattr(downloads, "by_urllib", lambda *_: b"\1" * 1000)
    with pytest.raises(ValueError, match="differ from the server's"):
        end.transfer(urls, "urllib", 5.0, file_bytes=1000)


def test_a_kept_connection_is_one_connection(server: str) -> None:
    kept = downloads.Kept()
    assert kept(f"{server}/bytes/5", 5.0) == kept(f"{server}/bytes/5", 5.0) == downloads_server.body(5)
    first = kept.own.connection.sock
    kept(f"{server}/bytes/7", 5.0)
    assert kept.own.connection.sock is first
    assert "404" in downloads.one(lambda _: len(kept(f"{server}/nothing", 5.0)), "a", 0.0)["error"]


def test_the_servers_cache_is_cold_until_it_was_asked(server: str) -> None:
    def took() -> float:
        start = time.perf_counter()
        downloads.by_urllib(f"{server}/cached/10/a", 5.0)
        return time.perf_counter() - start

    assert took() >= 0.05
    took()
    downloads.by_urllib(f"{server}/forget", 5.0)
    assert took() >= 0.05


def test_both_servers_hold_the_same(result: Result) -> None:
    # The core's server was compared with `body` in every download of the lesson.
    assert "latlab's own server" in result.table("original").note


def test_a_speed_up_that_nobody_can_know_is_not_stated() -> None:
    cell = Cell("ratio", 3.0, 2.0, 4.0, 6)
    assert lesson.known(cell) is cell
    assert lesson.known(Cell("ratio", 3.0, 0.5, 9.0, 6)).number is None
    assert "unknown: 7.60x" in lesson.known(Cell("ratio", 7.6, 2.0, 19.0, 6)).why


def test_the_phases_of_a_file_are_its_time_and_a_kept_connection_is_not_opened() -> None:
    stamps = distance.Stamps(
        begun=100, resolved=0, connected=300, secured=0, requested=400, first_byte=900, last_byte=1000
    )
    assert transfers.phases_of(stamps) == pytest.approx(
        {"connect": 2e-7, "request": 1e-7, "first_byte": 5e-7, "last_byte": 1e-7}
    )
    assert "connect" not in transfers.phases_of({**stamps, "connected": 0})


def test_a_process_that_is_late_or_ends_is_reported_and_gone() -> None:
    sleeper = distance.Helper([sys.executable, "-c", "import time; time.sleep(60)"])
    with pytest.raises(Cannot, match="did not answer"):
        sleeper.ask({}, 0.2)
    sleeper.close()
    ended = distance.Helper([sys.executable, "-c", "pass"])
    with pytest.raises(Cannot, match="ended"):
        ended.ask({})
    ended.close()


def test_urls_of_the_user_are_fetched_and_each_is_reported(server: str, tmp_path: Path) -> None:
    urls = (f"{server}/bytes/100", f"{server}/nothing", f"{server}/bytes/200")
    with Bench(directory=tmp_path, urls=urls) as bench:
        real = transfers.of_the_user(bench)
    tables = lesson.say(lesson.Found(transfers.PLANS["small"], None, real=real)).tables
    (table,) = [each for each in tables if each.name == "real"]
    rows = {row.name: str(row.cells["pool"].value) for row in table.rows[:3]}
    assert rows["url_1"].startswith("100 B, done as number")
    assert "404" in rows["url_2"]
    assert len(real.times["pool"].values) == 2
    assert table.cell("all", "pool_s").repeats == 2


def test_downloads_are_said_to_be_written_only_where_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_bench: Bench, _needed: int) -> None:
        raise Cannot("the disk has no room")

    reported: list[str] = []
    with Bench("small", directory=tmp_path, say=reported.append) as bench:
        assert Path(str(lesson._folder(bench))).is_dir()
        assert not any("memory" in text for text in reported)
        monkeypatch.setattr(Bench, "room", full)
        assert lesson._folder(bench) is None
        why = bench.why("a folder for the downloads")
    written, kept = (
        lesson.say(lesson.Found(transfers.PLANS["small"], None, lambda _, why=why: why)).tables[0]  # type: ignore[misc]
        for why in ("", why)
    )
    assert "Python writes each of these downloads to a file" in written.note
    assert "No download is written to a file here, all stay in memory: the disk has no room." in kept.note


def test_a_file_system_over_the_network_is_left_to_another_lesson() -> None:
    answers = lesson.say(lesson.Found(transfers.PLANS["small"], None)).answers
    (answer,) = (each.answer for each in answers if "NFS, SSHFS" in each.question)
    assert "does not measure it" in answer
    assert "latlab lesson block-size --dir DIR" in answer


@pytest.mark.parametrize(
    ("name", "url", "said"),
    [
        ("downloads", "ftp://a/b", "http"),
        ("downloads", "file:///etc/passwd", "http"),
        ("downloads", "http://", "host"),
        ("downloads", "http://[::1", "not a URL"),
        ("downloads", "http://a:99999/b", "not a URL: Port"),
        ("small-files", "http://a/b", "only the lesson downloads"),
    ],
)
def test_a_url_that_cannot_be_asked_is_a_mistake(name: str, url: str, said: str) -> None:
    with pytest.raises(UserError, match=re.escape(said)):
        lessons.run(name, "small", urls=[url])
    with pytest.raises(UserError, match="too many"):
        lessons.run("downloads", "small", urls=["http://a/b"] * 51)


_NO_NAMESPACE = """
import sys
from latlab.lessons import distance
from latlab.lessons.bench import Bench, Cannot
from latlab.lessons.experiments import downloads
try:
    with distance.path(0.005, 0.0):
        sys.exit("there was a path")
except Cannot as error:
    print(error)
with distance.loopback(0.0, core=True, wait_s=0.005) as way, Bench() as bench:
    ten = downloads.ten_files(bench, downloads.PLANS["small"], way, None)
    reported = downloads.say(downloads.Found(downloads.PLANS["small"], way, ten=ten))
    cell = reported.tables[0].cell("pool", "python")
    print(cell.number >= 0.01, cell.why)
    print(reported.misled[-1].says)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux" or UNSHARE < 0, reason="namespaces are Linux's")
def test_where_no_namespace_is_allowed_the_server_waits_and_every_figure_says_so() -> None:
    reported = subprocess.run(
        [sys.executable, "-c", _NO_NAMESPACE],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        preexec_fn=lambda: refuse(UNSHARE, errno.EPERM),
    )
    assert reported.returncode == 0, reported.stderr
    assert "no private network namespace" in reported.stdout
    assert "True emulated: the server waits 5 ms" in reported.stdout
    assert "valid for time to first byte only" in reported.stdout
    assert "waits in place of a distance" in reported.stdout


def _alone() -> None:
    """A network namespace whose loopback is not up."""
    if ctypes.CDLL(None, use_errno=True).unshare(0x40000000):
        raise OSError(ctypes.get_errno(), "unshare")


@pytest.mark.slow
@pytest.mark.skipif(
    sys.platform != "linux" or getattr(os, "geteuid", lambda: 1)() != 0,
    reason="needs a namespace without a loopback",
)
def test_without_any_network_each_part_is_named_and_nothing_breaks(tmp_path: Path) -> None:
    words = [*(sys.executable, "-m", "latlab", "lesson", "downloads", "--small"), "--dir", str(tmp_path)]
    reported = subprocess.run(
        [*words, "--json", "--plain"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        preexec_fn=_alone,
    )
    assert reported.returncode == 0, reported.stderr
    named = {part["what"] for part in json.loads(reported.stdout)["missing"]}
    assert {"ten files", "files that fail", "the loopback (the control)"} <= named
    assert not list(tmp_path.iterdir())
