from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fuzzing import inputs
from tests.some import some

from latlab.errors import RunFileError
from latlab.run import model, reader
from latlab.run.core import core
from latlab.run.fold import keeping, without_shape
from latlab.run.reader import Limits
from latlab.run.run import Run

ROUNDS = Path(__file__).resolve().parent.parent / "data" / "run-rounds.latlab.jsonl"
OLD = ROUNDS.with_name("run-v1.latlab.jsonl")
LINES = ROUNDS.read_bytes().splitlines(keepends=True)
HEADER, RECORD, FOOTER = LINES[0], LINES[1], LINES[-1]


def read_bytes(tmp_path: Path, data: bytes, limits: Limits | None = None) -> Run:
    path = tmp_path / "given.latlab.jsonl"
    path.write_bytes(data)
    return reader.read(path, limits)


def refusal(tmp_path: Path, data: bytes, limits: Limits | None = None) -> str:
    with pytest.raises(RunFileError) as error:
        read_bytes(tmp_path, data, limits)
    text = str(error.value)
    assert "\n" not in text
    assert text.isprintable()
    assert "given.latlab.jsonl" in text
    assert error.value.exit_code == 2
    return text


def changed(line: bytes, /, **fields: object) -> bytes:
    return json.dumps({**json.loads(line), **fields}).encode() + b"\n"


def test_a_complete_run_is_read_whole() -> None:
    run = reader.read(ROUNDS)
    assert len(run.lines) == len(LINES) - 2
    assert [record.round for record in run.lines] == sorted(record.round or 0 for record in run.lines)
    assert run.stopped_by == "completed"
    assert not run.notes
    assert run.path == ROUNDS


def test_without_a_footer_it_is_a_run_that_was_cut_short(tmp_path: Path) -> None:
    run = read_bytes(tmp_path, HEADER + RECORD)
    assert run.partial
    assert run.stopped_by == "cut short"
    assert len(run.lines) == len(run.records) == 1


@pytest.mark.parametrize("cut", [1, 10, 100, len(RECORD) - 1])
def test_a_last_line_that_was_cut_short_is_left_out_and_reported(tmp_path: Path, cut: int) -> None:
    run = read_bytes(tmp_path, HEADER + RECORD + RECORD[:-cut])
    assert len(run.lines) == (2 if cut == 1 else 1)
    assert bool(run.notes) == (cut != 1)


def test_every_truncation_of_a_run_is_a_shorter_run_or_a_clear_refusal(tmp_path: Path) -> None:
    data = HEADER + RECORD + RECORD + FOOTER
    for end in range(0, len(data), 37):
        # A line without its line break is whole.
        if end < len(HEADER) - 1:
            refusal(tmp_path, data[:end])
        else:
            whole = (end + 1 - len(HEADER)) // len(RECORD)
            assert len(read_bytes(tmp_path, data[:end]).lines) == min(whole, 2)


def test_room_that_was_never_filled_after_a_power_cut_is_left_out(tmp_path: Path) -> None:
    run = read_bytes(tmp_path, HEADER + RECORD + b"\0" * 4096)
    assert len(run.records) == 1
    assert run.notes


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is empty"),
        (b"\n", "not a run of latlab"),
        (b"hello\n", "not a run of latlab"),
        (b"\x7fELF\x02\x01\x01" + bytes(200), "not a run of latlab"),
        (b"\x1f\x8b\x08", "gzip"),
        (b"PK\x03\x04", "zip"),
        (b"{}\n", "not a run of latlab"),
        (b"[1, 2]\n", "not a run of latlab"),
        (b"null", "not a run of latlab"),
        (b'{"line":"header","schema":"fio.run/1.0"}\n', "not a run of latlab"),
        (RECORD, "not a run of latlab"),
        (HEADER[:-1000], "within its first line"),
        (changed(HEADER, schema="latlab.run/3.0"), "newer latlab"),
        (changed(HEADER, schema="latlab.run/0.9"), "not a run version"),
        (changed(HEADER, schema="latlab.run/x"), "not a run version"),
        (changed(HEADER, schema="latlab.run/" + "9" * 5000), "not a run version"),
        (HEADER + b"nonsense\n" + RECORD, ":2: damaged line"),
        (HEADER + b"\n" + RECORD, ":2: damaged line"),
        (HEADER + RECORD[:50] + b"\n" + RECORD, ":2: damaged line"),
        (HEADER + changed(RECORD, samples=-1), "damaged line"),
        (HEADER + changed(RECORD, samples="many"), "damaged line"),
        (HEADER + changed(RECORD, unit="furlong"), "damaged line"),
        (HEADER + changed(RECORD, line="surprise"), "damaged line"),
        (HEADER + RECORD.replace(b'"samples":30', b'"samples":' + b"9" * 400), "damaged line"),
        (HEADER + RECORD.replace(b'"samples":30', b'"samples":1e999'), "damaged line"),
        (HEADER + changed(RECORD, resolution_ns=float("nan")), "damaged line"),
        (HEADER + changed(RECORD, values=[float("inf")]), "damaged line"),
        (HEADER + changed(RECORD, probe="\ud800"), "damaged line"),
        (HEADER + RECORD.replace(b"kernel.syscall", b"\xff\xfe"), "damaged line"),
        (HEADER + changed(RECORD, findings={"x": 10**30}), "64 bits"),
        (HEADER + changed(RECORD, findings=json.loads("[" * 40 + "]" * 40)), "nested"),
        (HEADER + b'{"line":"record","z":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n", "nested too deeply"),
        (HEADER + b"[" * 5_000_000 + b"\n", "damaged line"),
        (changed(HEADER, machine=[1]), "damaged line"),
        (changed(HEADER, machine={"x": 10**30}), "64 bits"),
        (HEADER + HEADER, "second header"),
        (HEADER + FOOTER + RECORD, "follows the footer"),
        (HEADER + changed(RECORD, histogram={"encoding": "x", "unit": "ps", "data": "A" * 2**21}), "length"),
    ],
)
def test_what_is_no_run_is_refused_in_one_line_with_its_place(tmp_path: Path, data: bytes, said: str) -> None:
    assert said in refusal(tmp_path, data)


def test_a_newer_minor_version_is_read_and_its_new_fields_and_lines_are_passed_over(tmp_path: Path) -> None:
    header = changed(HEADER, schema="latlab.run/2.7", novel=[{"x": 1}])
    data = (
        header
        + changed(RECORD, novel="y")
        + changed(RECORD, line="aside")
        + changed(RECORD, kind="novel")
        + FOOTER
    )
    run = read_bytes(tmp_path, data)
    assert len(run.records) == 1
    assert run.footer is not None
    assert "2 lines of a newer format" in run.notes[0]


def test_a_file_of_version_1_is_one_round_without_intervals() -> None:
    run = reader.read(OLD)
    assert run.made_of == "one round"
    assert not run.notes
    assert run.levels[0].name == "L1"
    measured = some(record for record in run.records if record.value is not None)
    assert not any(record.interval for record in measured)
    assert [record.summary and record.summary.p50 for record in run.records] == [
        record.summary and record.summary.p50 for record in run.lines
    ]


def test_without_a_core_the_figures_are_those_of_the_footer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = reader.read(ROUNDS)
    assert run.footer is not None
    kept = tuple(map(without_shape, run.records))
    for bare, figure in some(zip(kept, run.records, strict=True), least=2):
        assert (bare.histogram, bare.values) == (None, None)
        assert (bare.tail, bare.blocks) == ((), ())
        assert [part.histogram for part in bare.channels] == [None] * len(figure.channels)
        assert [part.summary for part in bare.channels] == [part.summary for part in figure.channels]
        assert (bare.summary, bare.rounds) == (figure.summary, figure.rounds)
    whole = Run(
        run.header, run.records, msgspec.structs.replace(run.footer, fold=1, figures=kept), lines=run.lines
    )
    path = whole.save(tmp_path / "run.latlab.jsonl")
    assert reader.read(path) == whole
    monkeypatch.delattr("latlab._core", raising=False)
    monkeypatch.setitem(sys.modules, "latlab._core", None)
    alone = reader.read(path)
    assert tuple(alone.records) == kept
    assert "the measuring core cannot be loaded" in alone.notes[0]
    assert len(reader.read(ROUNDS).records) == 0


def test_in_short_a_run_has_the_figures_of_its_footer_if_they_are_of_this_version(tmp_path: Path) -> None:
    whole = reader.read(ROUNDS)
    assert whole.footer is not None
    path = tmp_path / "given.latlab.jsonl"
    for fold, is_short in ((core().FOLD_VERSION, True), (core().FOLD_VERSION + 1, False)):
        footer = msgspec.structs.replace(keeping(whole.footer, whole.records), fold=fold)
        path.write_bytes(b"".join(LINES[:-1]) + model.ENCODER.encode(footer))
        short = reader.read(path, in_short=True)
        assert [record.summary for record in short.records] == [record.summary for record in whole.records]
        assert (not short.lines) is is_short
        assert short.whole().records == whole.records
        assert short.whole().lines == whole.lines
    # A run that was cut short has no other figures than those of its rounds.
    path.write_bytes(b"".join(LINES[:-1]))
    assert reader.read(path, in_short=True).records == whole.records


def test_what_measure_json_prints_is_read_too(tmp_path: Path) -> None:
    run = reader.read(ROUNDS)
    assert read_bytes(tmp_path, run.to_json().encode()) == run
    pretty = json.dumps(json.loads(run.to_json()), indent=2).encode()
    assert read_bytes(tmp_path, pretty) == run
    assert "damaged" in refusal(tmp_path, pretty.replace(b'"records": [', b'"records": [3,'))


def test_a_file_that_is_not_there_a_folder_and_an_odd_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RunFileError, match="does not exist"):
        reader.read(tmp_path / "nothing")
    with pytest.raises(RunFileError, match="is a folder"):
        reader.read(tmp_path)
    with pytest.raises(RunFileError, match="cannot be read"):
        reader.read("a\0b")
    with pytest.raises(RunFileError, match="cannot be read"):
        reader.read("x" * 10_000)
    with pytest.raises(RunFileError, match="does not exist") as error:
        reader.read("\x1b[2J\n.jsonl")
    assert str(error.value).isprintable()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no FIFOs")
def test_a_fifo_and_a_device_are_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    odd = (tmp_path / "fifo", Path("/dev/zero"), Path("/dev/null"), Path("/dev/stdin"))
    for path in some(path for path in odd if path.exists()):
        with pytest.raises(RunFileError, match=r"not a regular file|is a folder|is empty|not a run"):
            reader.read(path)


@pytest.mark.skipif(os.name != "posix" or os.getuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "closed"
    path.write_bytes(HEADER)
    path.chmod(0)
    with pytest.raises(RunFileError, match="Permission denied"):
        reader.read(path)


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        (Limits(file_bytes=1 << 20), "larger than 1 MiB"),
        (Limits(line_bytes=1 << 20), "longer than 1 MiB"),
        (Limits(records=10), "more than 10 records"),
        (Limits(items_in_line=100), "more than 100 values"),
        (Limits(items=1000), "1,000 values"),
    ],
)
def test_each_bound_holds(tmp_path: Path, limits: Limits, said: str) -> None:
    big = changed(RECORD, engine="x" * (1 << 20))
    assert said in refusal(tmp_path, HEADER + RECORD * 30 + big, limits)


def test_a_file_of_nothing_but_line_breaks_or_commas_is_refused_at_once(tmp_path: Path) -> None:
    started = time.process_time()
    refusal(tmp_path, b"\n" * (64 << 20))
    refusal(tmp_path, HEADER + b"\n" * (64 << 20))
    assert "values" in refusal(
        tmp_path, HEADER + b'{"line":"record","values":[' + b"0," * 10_000_000 + b"0]}\n"
    )
    assert time.process_time() - started < 20


def test_a_packed_run_is_read_within_bounds(tmp_path: Path) -> None:
    zstandard = pytest.importorskip("zstandard")
    path = tmp_path / "run.latlab.jsonl.zst"
    path.write_bytes(zstandard.compress(ROUNDS.read_bytes()))
    assert reader.read(path) == reader.read(ROUNDS)
    path.write_bytes(zstandard.compress(b"\n" * (300 << 20)))
    with pytest.raises(RunFileError, match="when unpacked"):
        reader.read(path)
    path.write_bytes(zstandard.compress(ROUNDS.read_bytes())[:100])
    with pytest.raises(RunFileError):
        reader.read(path)
    path.write_bytes(b"\x28\xb5\x2f\xfd" + bytes(100))
    with pytest.raises(RunFileError):
        reader.read(path)
    path.write_bytes(zstandard.compress(b""))
    with pytest.raises(RunFileError, match="empty"):
        reader.read(path)


def use(run: Run) -> None:
    """Everything that a renderer does with a run must bear what the reader let through."""
    assert repr(run).isprintable()
    run.levels  # noqa: B018 - only that it does not fail
    assert run.to_csv().count("\n") == len(run.records) + 1
    run.to_json()
    run.anonymous()
    for record in run:
        record.label, record.value, record.interval, record.finding("levels")


def test_fuzz_of_any_bytes_gives_a_run_or_a_refusal(tmp_path: Path) -> None:
    texts = st.text(max_size=200).map(lambda text: text.encode("utf-8", "replace"))
    accepted: list[bool] = []

    @settings(max_examples=inputs(60, 0.01), deadline=None)
    @given(st.binary(max_size=400) | texts)
    def given_some(data: bytes) -> None:
        wholes = (data, HEADER + data, HEADER + RECORD + data + FOOTER, b"\x28\xb5\x2f\xfd" + data)
        accepted.extend(tried(tmp_path, each) for each in wholes)

    given_some()
    assert sum(accepted) >= len(accepted) / 20, "nearly all were refused: nothing was used"


def tried(tmp_path: Path, data: bytes) -> bool:
    """Whether it was read as a run, which was then used; else it was refused in one line."""
    try:
        use(read_bytes(tmp_path, data))
    except RunFileError as error:
        assert str(error).isprintable()  # noqa: PT017 - either outcome is right
        return False
    return True


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
PATHS = [
    *((name,) for name in json.loads(RECORD)),
    *(("summary", name) for name in json.loads(RECORD)["summary"]),
    *(("blocks", 0, name) for name in json.loads(RECORD)["blocks"][0]),
    ("findings",),
    ("tail",),
    ("error",),
]


def test_fuzz_of_any_value_in_any_field_is_read_or_refused(tmp_path: Path) -> None:
    accepted: list[bool] = []

    @settings(max_examples=inputs(120, 0.01), deadline=None)
    @given(st.sampled_from(PATHS), JSON)
    def given_one(path: tuple[str | int, ...], value: object) -> None:
        record = json.loads(RECORD)
        place = record
        for name in path[:-1]:
            place = place[name]
        place[path[-1]] = value
        accepted.append(tried(tmp_path, HEADER + json.dumps(record).encode() + b"\n" + FOOTER))

    given_one()
    assert sum(accepted) >= len(accepted) / 20, "nearly all were refused: nothing was used"
