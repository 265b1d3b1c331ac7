"""What lessons measured, kept: a recording is played back in place of the measuring.

A lesson measures through its `Bench`: `attempt` does some work and returns what it found, or keeps why it
could not. A recording holds what each outermost `attempt` returned and changed, the turns that were taken
outside of one, and what a few other functions said of the machine. All that a lesson says follows from these.

    python -m tests.golden.recorded FOLDER [NAME]...

measures each lesson at its smallest size (some seconds each) and writes `FOLDER/<name>.json.zst`.
"""

from __future__ import annotations

import array
import contextlib
import dataclasses
import importlib
import json
import math
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path, PurePath
from typing import Any, Final, TypeVar, cast
from unittest import mock

import zstandard

from latlab import lessons
from latlab.lessons import bench as benches
from latlab.lessons.model import Missing, Result
from latlab.run import reader
from latlab.run.run import Run

T = TypeVar("T")
Plain = Any

EXPERIMENTS: Final = "latlab.lessons.experiments"
#: Where a recorded path was, whoever recorded it.
PLACE: Final = "/place"
#: What lessons ask of the machine outside of an attempt.
ASKED: Final = {
    "block-size": ("power", "file_system"),
    "latency-ladder": ("rotational", "cache_sizes"),
    "random-pokes": ("system",),
}
#: Of the result: when and where it was measured.
ABOUT: Final = ("started", "seconds", "tool", "machine")


# ------------------------------------------------------------------------------------- values as plain JSON


def plain(value: object) -> Plain:
    """A value as JSON; what has no data, such as a running server, is an object without fields."""
    for kinds, write in _PLAIN:
        if isinstance(value, kinds):
            return write(value)
    kind = f"{type(value).__module__}:{type(value).__qualname__}"
    names: Iterable[str] | None = getattr(value, "_fields", None) or getattr(value, "__struct_fields__", None)
    if dataclasses.is_dataclass(value):
        names = [each.name for each in dataclasses.fields(value)]
    if names is None:
        if isinstance(value, tuple):
            return {"$tuple": [plain(each) for each in value]}
        kind, names = "types:SimpleNamespace", ()
    return {"$": kind, "fields": {name: plain(getattr(value, name)) for name in names}}


def _without_place(text: object) -> str:
    return str(text).replace(Recording.place, PLACE)


_PLAIN: Final[tuple[tuple[Any, Callable[[Any], Plain]], ...]] = (
    (str, _without_place),
    ((bool, int, type(None)), lambda value: value),
    (float, lambda value: value if math.isfinite(value) else {"$float": str(value)}),
    (list, lambda values: [plain(each) for each in values]),
    (frozenset, lambda values: {"$set": [plain(each) for each in values]}),
    (bytes, lambda value: {"$bytes": value.decode("latin-1")}),
    (PurePath, lambda path: {"$path": _without_place(path)}),
    (Mapping, lambda pairs: {"$map": [[plain(key), plain(each)] for key, each in pairs.items()]}),
    (array.array, lambda values: {"$array": values.typecode, "values": values.tolist()}),
    (Run, lambda run: {"$run": json.loads(run.anonymous().to_json())}),
)


def whole(value: Plain) -> Any:  # noqa: ANN401 - any type that a lesson measures
    """The value that `plain` was given."""
    if isinstance(value, list):
        return [whole(each) for each in value]
    if not isinstance(value, dict):
        return value
    if "$" in value:
        return _made(value["$"], {name: whole(each) for name, each in value["fields"].items()})
    if "$array" in value:
        return array.array(value["$array"], value["values"])
    ((tag, inside),) = value.items()
    return _WHOLE[tag](inside)


def _made(kind: str, fields: dict[str, object]) -> object:
    module, _, name = kind.partition(":")
    made: Any = importlib.import_module(module)
    for part in name.split("."):
        made = getattr(made, part)
    return made(**fields)


def _run(content: Plain) -> Run:
    name = content["id"]
    if name not in _RUNS:
        _RUNS[name] = _read(content)
    return _RUNS[name]


def _read(content: Plain) -> Run:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "run.json"
        file.write_text(json.dumps(content), encoding="utf-8")
        run = reader.read(file)
    run.path = None
    return run


#: Runs that were read, by id: nobody changes one.
_RUNS: Final[dict[str, Run]] = {}
_WHOLE: Final[dict[str, Callable[[Plain], object]]] = {
    "$float": float,
    "$path": Path,
    "$map": lambda pairs: {whole(key): whole(each) for key, each in pairs},
    "$tuple": lambda values: tuple(map(whole, values)),
    "$set": lambda values: frozenset(map(whole, values)),
    "$bytes": lambda text: text.encode("latin-1"),
    "$run": _run,
}


# ------------------------------------------------------------------------------------------------ recording


class Recording(benches.Bench):
    """A bench that keeps what was found."""

    place = PLACE
    kept: dict[str, list[Plain]]
    depth = 0

    def attempt(self, what: str, work: Callable[[], T], *, reported: bool = True) -> T | None:
        if self.depth:
            return super().attempt(what, work, reported=reported)
        before, reasons, run = len(self.missing), dict(self._reasons), self.run
        type(self).depth += 1
        try:
            found = super().attempt(what, work, reported=reported)
        finally:
            type(self).depth -= 1
        new = {name: why for name, why in self._reasons.items() if reasons.get(name) != why}
        self.kept.setdefault(what, []).append(
            {
                "found": plain(found),
                "missing": [[each.what, each.why] for each in self.missing[before:]],
                "reasons": new,
                **({} if self.run is run else {"run": plain(self.run)}),
            }
        )
        return found


def taking_turns(kept: list[list[int]], real: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
    """`in_turns` which keeps the order that was taken, outside of attempts."""

    def in_turns(items: Iterable[T], rounds: int, within: float = math.inf) -> Iterator[T]:
        some = list(items)
        if Recording.depth:
            yield from real(some, rounds, within)
            return
        order: list[int] = []
        kept.append(order)
        for number in real(range(len(some)), rounds, within):
            order.append(number)
            yield some[number]

    return in_turns


def record(name: str, place: Path) -> Plain:
    """Measures the lesson at its smallest size."""
    Recording.place, Recording.kept = str(place), {}
    turns: list[list[int]] = []
    asked: dict[str, list[Plain]] = {}
    lesson = importlib.import_module(f"{EXPERIMENTS}.{name.replace('-', '_')}")
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.object(lessons, "Bench", Recording))
        turning = taking_turns(turns, benches.in_turns)
        for module in (benches, lesson):
            if hasattr(module, "in_turns"):
                stack.enter_context(mock.patch.object(module, "in_turns", turning))
        for function in ASKED.get(name, ()):
            answers = asked.setdefault(function, [])
            stack.enter_context(
                mock.patch.object(lesson, function, _keeping(getattr(lesson, function), answers))
            )
        result = lessons.run(name, "small", directory=place)
    about = {each: plain(getattr(result, each)) for each in ABOUT}
    return {"lesson": name, "about": about, "attempts": Recording.kept, "turns": turns, "asked": asked}


def _keeping(function: Callable[..., T], answers: list[Plain]) -> Callable[..., T]:
    def asked(*arguments: object) -> T:
        answers.append(plain(found := function(*arguments)))
        return found

    return asked


# -------------------------------------------------------------------------------------------------- playing


class Playing(benches.Bench):
    """A bench that finds what was found before; what it is told to lack it lacks."""

    recording: Plain
    without: frozenset[str]

    def __enter__(self) -> Playing:
        self._left = {what: list(found) for what, found in self.recording["attempts"].items()}
        return self

    @property
    def folder(self) -> Path:
        return Path(PLACE)

    def room(self, needed: int, place: Path | None = None) -> None:
        """There is room."""

    @contextlib.contextmanager
    def scratch(self) -> Iterator[Path]:
        yield self.folder

    def attempt(self, what: str, work: Callable[[], T], *, reported: bool = True) -> T | None:
        left = self._left.get(what, [])
        if what in self.without or not left:
            self.lacks(what, "it cannot be had here" if what in self.without else "nobody has recorded it")
            return None
        found = left.pop(0)
        self.missing += [Missing(*pair) for pair in found["missing"]]
        self._reasons |= found["reasons"]
        if "run" in found:
            self.run = whole(found["run"])
        # A recording is played many times, and nobody changes what was found.
        if "whole" not in found:
            found["whole"] = whole(found["found"])
        return cast("T", found["whole"])


def play(
    recording: Plain, *, without: Iterable[str] = (), bare: bool = False, guess: str | None = None
) -> Result:
    """The lesson's result from a recording.

    Args:
        recording: Of `record`.
        without: Attempts that fail.
        bare: As with `--plain`.
        guess: Of a reader.
    """
    name = recording["lesson"]
    lesson = importlib.import_module(f"{EXPERIMENTS}.{name.replace('-', '_')}")
    turns = iter(recording["turns"])

    def in_turns(items: Iterable[T], rounds: int, within: float = math.inf) -> Iterator[T]:
        some = list(items)
        return (some[number] for number in next(turns, []) if number < len(some))

    kept = {"recording": recording, "without": frozenset(without)}
    about = {each: whole(value) for each, value in recording["about"].items()}
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.object(lessons, "Bench", type("Played", (Playing,), kept)))
        stack.enter_context(mock.patch.object(lessons, "machine", return_value=about["machine"]))
        for module in (benches, lesson):
            if hasattr(module, "in_turns"):
                stack.enter_context(mock.patch.object(module, "in_turns", in_turns))
        for function, answers in recording["asked"].items():
            given = map(whole, answers)
            stack.enter_context(
                mock.patch.object(lesson, function, lambda *_, given=given: next(given, None))
            )
        if hasattr(lesson, "workshop"):
            stack.enter_context(mock.patch.object(lesson.workshop, "built", return_value=None))
        result = lessons.run(name, "small", plain=bare, guess=guess)
    return dataclasses.replace(result, **about)


def load(file: Path) -> Plain:
    """A recording.

    Raises:
        FileNotFoundError: there is none; it says how to make it.
    """
    if not file.exists():
        name = file.name.partition(".")[0]
        raise FileNotFoundError(
            f"record it: python -m tests.golden.recorded tests/golden/inputs/lessons {name}"
        )
    return json.loads(zstandard.decompress(file.read_bytes()))


def main(folder: Path, names: Iterable[str]) -> None:
    for name in names:
        with tempfile.TemporaryDirectory(prefix="latlab-recorded-") as place:
            recording = record(name, Path(place))
        text = json.dumps(recording, ensure_ascii=False, separators=(",", ":")).encode()
        packed = zstandard.ZstdCompressor(19).compress(text)
        (folder / f"{name}.json.zst").write_bytes(packed)
        sys.stderr.write(f"{name}: {len(text):,} bytes, {len(packed):,} packed\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:] or lessons.LESSONS)
