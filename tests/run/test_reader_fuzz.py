"""Bytes of valid run files changed at random: what is read is a run or one line that says why not."""

from __future__ import annotations

import json
import os
import random
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.fuzzing import inputs

from latlab.errors import RunFileError
from latlab.run import reader
from latlab.run.run import Run

ROUNDS = Path(__file__).resolve().parent.parent / "data" / "run-rounds.latlab.jsonl"
_ROOM = 400 << 20
_NUMBERS = (b"-1", b"0", b"1e999", b"1e-999", b"NaN", b"4294967296", b"9223372036854775807", b"9" * 20)
_PIECES = (
    b"{",
    b"}",
    b"[",
    b"]",
    b'"',
    b",",
    b":",
    b"\n",
    b"null",
    b"true",
    b"\\u0000",
    b"\\ud800",
    b"\xff",
    b"\0",
)


def sample() -> bytes:
    """A run with one record of each shape, as small as they come."""
    header, *records, footer = ROUNDS.read_bytes().splitlines(keepends=True)
    kinds: dict[tuple[str, bool, bool], bytes] = {}
    for line in sorted(records, key=len):
        record = json.loads(line)
        kinds.setdefault((record["kind"], "histogram" in record, "findings" in record), line)
    return b"".join([header, *kinds.values(), footer])


def whole(tmp_path: Path, lines: bytes) -> bytes:
    """The same run as one object."""
    path = tmp_path / "whole.latlab.jsonl"
    path.write_bytes(lines)
    return reader.read(path).to_json().encode()


def mutated(data: bytes, dice: random.Random) -> bytes:
    """One to four changes, the first of them perhaps an end too early."""
    out = bytearray(data)
    for _ in range(dice.choice((1, 1, 1, 2, 4))):
        at = dice.randrange(len(out) + 1)
        far = min(at + dice.choice((1, 2, 8, 64, 1024)), len(out))
        match dice.randrange(8):
            case 0:
                del out[at:]
            case 1:
                del out[at:far]
            case 2:
                out[at:far] = dice.randbytes(far - at)
            case 3:
                out[at:at] = dice.choice(_PIECES) * dice.choice((1, 1, 2, 1000))
            case 4:
                if number := re.compile(rb"\d+").search(out, at):
                    out[number.start() : number.end()] = dice.choice(_NUMBERS)
            case 5:
                other = dice.randrange(len(out) + 1)
                out[other:other] = out[at:far]
            case 6:
                if word := re.compile(rb'"[^"\\]*"').search(out, at):
                    out[word.start() + 1 : word.end() - 1] = dice.choice(
                        (b"", b"x", dice.randbytes(3), b"-1")
                    )
            case _:
                if at < len(out):
                    out[at] ^= 1 << dice.randrange(8)
    return bytes(out)


def used(run: Run) -> None:
    """What every rendering begins with."""
    assert repr(run).isprintable()
    run.levels  # noqa: B018 - only that it does not fail
    assert run.to_csv().count("\n") == len(run.records) + 1
    for record in run:
        record.label, record.value, record.interval, record.finding("levels")
        record.buckets()


@pytest.fixture
def little_memory() -> Iterator[None]:
    """Room for a run, not for what a number in a small file may claim."""
    if not sys.platform.startswith("linux"):
        yield
        return
    import resource  # noqa: PLC0415 - Unix only

    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * os.sysconf("SC_PAGE_SIZE") + _ROOM, hard))
    yield
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def fuzzed(path: Path, valid: bytes, count: int, then: Callable[[Run], None]) -> int:
    """How many of the changed files were read as a run; the seed of what fails is in the report."""
    accepted = 0
    for seed in range(count):
        path.write_bytes(mutated(valid, random.Random(seed)))
        try:
            run = reader.read(path)
            accepted += 1
            then(run)
        except RunFileError as error:
            assert str(error).isprintable(), f"seed {seed}"  # noqa: PT017 - either outcome is right
            assert "does not fit into memory" not in str(error), f"seed {seed}"  # noqa: PT017
        except BaseException as error:
            error.add_note(f"failed with seed {seed}")
            raise
    return accepted


@pytest.mark.usefixtures("little_memory")
def test_fuzz_of_the_reader_gives_a_run_or_one_line(tmp_path: Path) -> None:
    count = inputs(1000, 0.8)
    accepted = fuzzed(tmp_path / "given.latlab.jsonl", sample(), count, used)
    assert accepted >= count // 10


@pytest.mark.usefixtures("little_memory")
def test_fuzz_of_a_run_that_is_one_object_gives_a_run_or_one_line(tmp_path: Path) -> None:
    count = inputs(200, 0.1)
    accepted = fuzzed(tmp_path / "given.latlab.jsonl", whole(tmp_path, sample()), count, used)
    assert accepted >= count // 10


@pytest.mark.usefixtures("little_memory")
def test_fuzz_of_a_packed_run_gives_a_run_or_one_line(tmp_path: Path) -> None:
    zstandard = pytest.importorskip("zstandard")
    count = inputs(200, 0.1)
    packed = zstandard.compress(sample())
    path = tmp_path / "given.latlab.jsonl.zst"
    path.write_bytes(packed)
    assert reader.read(path).footer is not None
    assert fuzzed(path, packed, count, used) < count


@pytest.mark.usefixtures("little_memory")
def test_fuzz_of_sharing_gives_a_run_or_one_line(tmp_path: Path) -> None:
    count = inputs(50, 0.01)
    accepted = fuzzed(tmp_path / "given.latlab.jsonl", sample(), count, lambda run: used(run.anonymous()))
    assert accepted >= count // 10
