"""A run in short: its header and the medians of its figures, from the first and the last line of its file.

The last line, the footer, holds the figures. Where it does not (a run that was cut short, one of another
version, a packed file), the whole file is read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

import msgspec

from latlab.errors import WorkerError
from latlab.run.core import core
from latlab.run.meanwhile import Meanwhile
from latlab.run.model import SCHEMA_MAJOR, SCHEMA_NAME, Check, Kind, Unit
from latlab.run.point import Point
from latlab.run.reader import FIGURES, Limits, read
from latlab.run.run import Run
from latlab.run.samples import Key, Sample
from latlab.run.store import Head
from latlab.run.values import Count

#: Of a file's end, read first; twice as much where a line begins before it.
_BLOCK: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Brief:
    """A run in short.

    Attributes:
        path: Its file.
        head: What of its header says on what and how it was measured.
        medians: Its wanted figures above zero, without those of which a proof failed.
        meanwhile: What else happened while it lasted, where that is known.
    """

    path: Path
    head: Head
    medians: tuple[Sample, ...]
    meanwhile: Meanwhile | None = None


class _Summary(msgspec.Struct):
    p50: float | None = None
    intervals: dict[str, tuple[float, float]] = msgspec.field(default_factory=dict)


class _Figure(msgspec.Struct):
    probe: str
    method: Count
    unit: Unit
    kind: Kind
    # Of a few of hundreds only these are decoded.
    point: msgspec.Raw = msgspec.Raw(b"{}")
    summary: msgspec.Raw = msgspec.Raw(b"null")
    checks: msgspec.Raw = msgspec.Raw(b"[]")
    flags: tuple[str, ...] = ()


class _Footer(msgspec.Struct, tag_field="line", tag="footer"):
    fold: int = 0
    figures: tuple[_Figure, ...] = ()
    meanwhile: Meanwhile | None = None


_BEGIN: Final = b'{"line":"record",'
_FIGURE: Final = msgspec.json.Decoder(_Figure)
_FOOTER: Final = msgspec.json.Decoder(_Footer)
_SUMMARY: Final = msgspec.json.Decoder(_Summary | None)
_CHECKS: Final = msgspec.json.Decoder(tuple[Check, ...])


def brief(
    path: Path, own: Head, wanted: Callable[[str, str], bool], probes: frozenset[str] = frozenset()
) -> Brief:
    """Reads a run in short.

    Args:
        path: The run file.
        own: What its first line says.
        wanted: Whether a figure is, by its probe and its point.
        probes: Those that wanted figures are of; of any where it is empty.

    Raises:
        RunFileError: it cannot be read as a run.
    """
    try:
        if path.suffix != ".zst" and own.schema.startswith(f"{SCHEMA_NAME}/{SCHEMA_MAJOR}."):
            text = last_line(path)
            footer = (_chosen(text, probes) if probes else None) or _FOOTER.decode(text)
            if footer.figures and footer.fold == core().FOLD_VERSION:
                found = (_median(figure, wanted) for figure in footer.figures)
                medians = tuple(median for median in found if median is not None)
                return Brief(path, own, medians, footer.meanwhile)
    except (OSError, ValueError, RecursionError, WorkerError):
        # What is wrong with the file is said by its reader.
        pass
    return _of_run(path, own, read(path), wanted)


def _chosen(text: bytes, probes: frozenset[str]) -> _Footer | None:
    """The figures of some probes, the others not decoded; None where the line is not as we write it.

    Quotes within strings are escaped: what begins a figure stands nowhere else.
    """
    start = FIGURES.search(text)
    if start is None:
        return None
    found = []
    for each in _begins(probes).finditer(text, start.end()):
        end = text.find(b"," + _BEGIN, each.end())
        found.append(_FIGURE.decode(memoryview(text)[each.start() : end if end >= 0 else text.rindex(b"]")]))
    return _Footer(int(start[1]), tuple(found))


@lru_cache(maxsize=4)
def _begins(probes: frozenset[str]) -> re.Pattern[bytes]:
    names = b"|".join(re.escape(probe.encode()) for probe in sorted(probes))
    return re.compile(re.escape(_BEGIN) + b'"probe":"(?:' + names + b')"')


def last_line(path: Path) -> bytes:
    """The last line of a file, without what stands before it being read; of a very long one a part."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        length = min(_BLOCK, size)
        while True:
            file.seek(size - length)
            text = file.read(length)
            start = text.rfind(b"\n", 0, len(text) - 1)
            if start >= 0 or length in {size, Limits().line_bytes}:
                return text[start + 1 :]
            length = min(2 * length, size, Limits().line_bytes)


def _median(figure: _Figure, wanted: Callable[[str, str], bool]) -> Sample | None:
    point = _label(bytes(figure.point))
    if figure.kind == "derived" or not wanted(figure.probe, point):
        return None
    summary = _SUMMARY.decode(figure.summary)
    if summary is None or summary.p50 is None or summary.p50 <= 0:
        return None
    if not all(check.ok for check in _CHECKS.decode(figure.checks)):
        return None
    return Sample(
        Key(figure.probe, point, figure.kind, "p50"),
        figure.unit,
        figure.method,
        summary.p50,
        summary.intervals.get("p50"),
        "disturbed" in figure.flags,
    )


@lru_cache(maxsize=10_000)
def _label(point: bytes) -> str:
    """Runs have the same points."""
    return msgspec.json.decode(point, type=Point).label()


def _of_run(path: Path, own: Head, run: Run, wanted: Callable[[str, str], bool]) -> Brief:
    medians = (each for each in run.samples if each.key.quantile == "p50")
    chosen = tuple(each for each in medians if wanted(each.key.probe, each.key.point))
    return Brief(path, own, chosen, None if run.footer is None else run.footer.meanwhile)
