"""The page of a program: the verdict first, whole in itself, hostile names shown as text."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from click.testing import CliRunner
from tests.some import some

from latlab.cli.explain import command
from latlab.errors import UserError
from latlab.explain.model import Explained
from latlab.explain.page import document
from latlab.explain.page.flame import boxes
from latlab.explain.page.lanes import cells, coarser
from latlab.explain.page.roofline import dots
from latlab.explain.page.series import OTHERS, Series
from latlab.explain.page.tables import files_sentence, files_statements
from latlab.explain.resources import EndedWait, File, Moved, PathStep
from latlab.explain.resources import Path as CriticalPath
from latlab.explain.verdict import verdict
from latlab.report import html
from latlab.run.model import Machine

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="explain reads /proc")


def changed(explained: Explained, **fields: object) -> Explained:
    return msgspec.structs.replace(explained, **fields)


def rendered(explained: Explained) -> str:
    return html.render(document(explained, Machine({}), {}))


def test_the_command_writes_the_page_and_ends_as_the_program(written: SimpleNamespace) -> None:
    assert written.returned == 3
    main = written.html.index('<main id="main">')
    first = written.html.index(" spends ")
    assert main < first < written.html.index("Shares of wall time")
    assert "exit code 3" in written.html
    assert len(written.html.encode()) < 2_000_000


def test_the_page_has_every_part(written: SimpleNamespace) -> None:
    sections = re.findall(r'<section id="([a-z]+)"', written.html)
    # Only where there is something to say: what can be saved, which lines, what its end hung on, and locks
    # (its two threads may meet at the interpreter's).
    parts = ["answer", "ledger", "timeline", "functions", "stages", "files", "roofline", "seen"]
    assert [name for name in sections if name not in ("savings", "lines", "path", "locks")] == parts
    island = re.search(r'id="latlab-data">(.*?)</script>', written.html)
    assert island is not None
    charts = set(json.loads(island[1])["charts"])
    assert charts >= {f"explain_{name}" for name in ("bar", "timeline", "threads", "flame", "stages")}
    assert written.input.name in written.html


def test_the_page_names_no_address_outside_of_itself(written: SimpleNamespace) -> None:
    elements = re.sub(r"<(script|style)[^>]*>.*?</\1>", "", written.html, flags=re.DOTALL)
    assert not re.search(r"""(?:src|href|action|data|poster)\s*=\s*["']?(?!#)(?!["'])""", elements)
    assert "://" not in elements
    assert "default-src &#39;none&#39;" in elements
    data = written.html.split('id="latlab-data">')[1].split("</script>")[0]
    assert "://" not in data


def test_what_its_end_waited_for_is_on_the_page(written: SimpleNamespace) -> None:
    steps = (PathStep("sort", 0.8, 8.0, 20, "on-cpu"), PathStep("tr", 0.2, 2.0, 21, "pipe"))
    waits = (EndedWait("tr", "pipe", 7.0, 12, 21, 20, "sort"),)
    path = CriticalPath(0.9, steps, waits)
    page = rendered(changed(written.explained, path=path, about_path="By records."))
    assert "What determined its end?" in page
    for shown in ("The critical path", "sort (20)", "80 %", "by who ended them", "By records."):
        assert shown in page
    little = rendered(changed(written.explained, path=CriticalPath(0.4, steps, waits)))
    assert "What determined its end?" not in little


def test_hostile_names_are_text(written: SimpleNamespace) -> None:
    bad = "</script><img src=x onerror=alert(1)>\x1b[31m\u202e"
    explained = written.explained
    moved = Moved(bytes=1e6, inferred=0, busy_s=0.1, block_bytes=4096)
    row = File(bad, "file", 1, bad, (3,), 1, 0, read=moved)
    hostile = changed(
        explained,
        files=changed(explained.files, rows=(row,)),
        program=changed(explained.program, arguments=(bad, bad)),
        notes=(bad,),
        stacks=tuple(
            msgspec.structs.replace(stack, frames=(bad, *stack.frames)) for stack in explained.stacks
        ),
        timeline=changed(
            explained.timeline,
            stages=tuple(msgspec.structs.replace(stage, name=bad) for stage in explained.timeline.stages),
        ),
        stages=tuple(msgspec.structs.replace(stage, name=bad) for stage in explained.stages),
    )
    page = rendered(hostile)
    assert "<img" not in page
    assert page.count("<script") == rendered(explained).count("<script")
    assert "\x1b" not in page
    assert "\u202e" not in page


def test_without_files_stages_or_stacks_the_page_says_why(written: SimpleNamespace) -> None:
    explained = written.explained
    bare = changed(
        explained,
        files=changed(explained.files, rows=()),
        stages=(),
        stacks=(),
        timeline=changed(explained.timeline, stages=(), threads=(), bins=(), thread_names=()),
    )
    page = rendered(bare)
    assert "No figure: no file, pipe or socket was open long enough" in page
    assert '<section id="timeline"' not in page
    assert verdict(bare)[0].split(" (")[0] in page.replace("\u00a0", " ")


def test_what_no_file_is_known_for_is_said_and_how_often_was_looked(written: SimpleNamespace) -> None:
    files = written.explained.files
    assert 0 < files.every_s < written.explained.wall_s
    partly = changed(files, read_share=0.4, counted_read_bytes=1e6, written_share=1.0, every_s=0.012)
    said = files_sentence(changed(written.explained, files=partly))
    assert "40 % of the 977 KiB read" in said
    assert "60 % of what was read has no file here" in said
    assert "of what was written" not in said
    about = " ".join(files_statements(changed(written.explained, files=changed(partly, by_position=True))))
    assert ", every 12.0 ms on average. Files" in about
    assert "kcmp is refused" in about


def test_boxes_lie_in_their_callers_and_all_of_them_in_the_wall_time(written: SimpleNamespace) -> None:
    found = boxes(written.explained, Series(written.explained))
    floor = [box for box in found if box["depth"] == 0]
    assert sum(box["x2"] - box["x"] for box in floor) == pytest.approx(1, abs=0.02)
    # Without samples there are no stacks.
    for box in some((box for box in found if box["depth"]), least=len(written.explained.stacks) > 0):
        below = [other for other in found if other["depth"] == box["depth"] - 1]
        assert any(other["x"] - 1e-9 <= box["x"] and box["x2"] <= other["x2"] + 1e-9 for other in below)


def test_a_lane_has_no_more_cells_than_a_screen_shows(written: SimpleNamespace) -> None:
    timeline = written.explained.timeline
    lane = max(timeline.threads, key=lambda each: len(each.spans))
    each_s = timeline.end_s / 5000
    many = msgspec.structs.replace(lane, spans=tuple((n * each_s, each_s, 0, 1.0) for n in range(5000)))
    (cell,) = cells(written.explained, many)
    assert cell[1] == pytest.approx(timeline.end_s)
    assert len(cells(written.explained, lane)) <= max(240, len(lane.spans))


def test_stretches_that_are_joined_keep_their_times() -> None:
    spans = [(n * 0.001, 0.0005, 1, 0.0005) for n in range(1000)]
    joined = coarser(spans, 50)
    assert len(joined) <= 50
    assert sum(span[2] for span in joined) == 1000
    assert sum(span[3] for span in joined) == pytest.approx(0.5)


def test_five_categories_have_a_colour_and_the_rest_one(written: SimpleNamespace) -> None:
    series = Series(written.explained)
    assert 1 <= len(series.names) <= 5
    assert series.of(series.names[0]) == series.names[0]
    assert series.of("no such category") == OTHERS


def test_the_programs_dot_is_what_it_moved_over_the_time_that_it_took(written: SimpleNamespace) -> None:
    explained = written.explained
    rows = tuple(
        msgspec.structs.replace(row, share=0.1, low=0.05, high=0.2)
        if row.name in ("file-io-cpu", "storage-wait")
        else msgspec.structs.replace(row, share=0.0)
        for row in explained.categories
    )
    counters = msgspec.structs.replace(
        explained.counters, read_chars=1e9, read_calls=1e4, written_chars=0.0, write_calls=0.0
    )
    whole = dots(changed(explained, categories=rows, counters=counters))[0]
    share = sum(row.share for row in rows)
    assert (whole.name, whole.block) == ("all: read", 1e5)
    assert whole.rate == pytest.approx(1e9 / (share * explained.wall_s))
    assert whole.low < whole.rate < whole.high


def test_two_outputs_cannot_be_one_file(tmp_path: Path) -> None:
    same = str(tmp_path / "same")
    result = CliRunner().invoke(command, ["--html", same, "--trace", same, "--", "true"])
    assert isinstance(result.exception, UserError)
    assert "a different file for each" in str(result.exception)
