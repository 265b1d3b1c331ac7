"""Results of a class: one lesson that was run on many machines, in one table and one picture.

    latlab lesson small-files --out mine.json                 on each machine
    latlab lesson small-files --compare results/*.json        all of them together

Machines are called by the order of the files, and nothing that names a person, a host or a file is shown.
What comes out is a `Result` again, so every form of a lesson shows it. A machine is an outlier by its
distance from the median in median absolute deviations (Iglewicz and Hoaglin, 1993), and only where the
machine's own interval does not reach the median. What it has unlike most others is named.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from latlab.errors import UserError
from latlab.installed import version
from latlab.lessons import named
from latlab.lessons.figures import Cell, Published, written
from latlab.lessons.model import SCHEMA, Result
from latlab.lessons.template import reported
from latlab.text import clean
from latlab.units import format_factor

#: A result has some hundred KiB.
MOST_BYTES: Final = 32 << 20
MOST_FILES: Final = 1000
_FEWEST: Final = 2
#: Beyond so many median absolute deviations a value stands apart: 3.5 standard deviations of a normal.
_DEVIATIONS: Final = 3.5 * 1.4826
#: No machine stands apart by less: so much two runs of one machine may differ, above all on a disk.
_LEAST_RATIO: Final = 1.5
_LEAST_SHARE: Final = 0.1
_FACTS: Final = {
    "processor": "processor",
    "cpus": "number of CPUs",
    "memory": "memory",
    "system": "system",
    "python": "Python",
    "file_system": "file system",
    "environment": "environment",
}


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of a lesson on all machines.

    Attributes:
        title: What it is: its row and column, and its table where others are called so too.
        cells: Of those machines that have a number there, by their place in the class (from 0).
        published: The source's.
    """

    title: str
    cells: Mapping[int, Cell]
    published: Published | None

    @property
    def numbers(self) -> dict[int, float]:
        """By machine."""
        return {place: cell.number for place, cell in self.cells.items() if cell.number is not None}

    @property
    def median(self) -> Cell:
        """Of the machines; from the smallest to the largest."""
        numbers = self.numbers.values()
        middle, unit = statistics.median(numbers), next(iter(self.cells.values())).unit
        return Cell(unit, middle, min(numbers), max(numbers), len(numbers), self.published)

    @property
    def lowest(self) -> int:
        """The machine with the smallest."""
        return min(self.numbers, key=self.numbers.__getitem__)

    @property
    def highest(self) -> int:
        """The machine with the largest."""
        return max(self.numbers, key=self.numbers.__getitem__)

    def apart(self) -> list[int]:
        """The machines whose figures are outliers; none of fewer than three."""
        numbers, unit = self.numbers, self.median.unit
        of_ratio = unit != "share" and min(numbers.values()) > 0
        least = math.log(_LEAST_RATIO) if of_ratio else _LEAST_SHARE if unit == "share" else 0.0
        scaled = {place: math.log(number) if of_ratio else number for place, number in numbers.items()}
        middle = statistics.median(scaled.values())
        beyond = max(_DEVIATIONS * statistics.median(abs(each - middle) for each in scaled.values()), least)
        return [
            place
            for place, number in scaled.items()
            if len(scaled) > _FEWEST and abs(number - middle) > beyond and self._excludes(place)
        ]

    @property
    def named_apart(self) -> str:
        """The same as people call them: `4, 17`."""
        return ", ".join(str(place + 1) for place in self.apart())

    def _excludes(self, place: int) -> bool:
        cell, middle = self.cells[place], self.median.number or 0.0
        return cell.low is None or cell.above(middle) or cell.below(middle)


def compared(name: str, files: Sequence[str | Path]) -> Result:
    """The results of a class, as one: what `latlab lesson NAME --out FILE.json` wrote on each machine.

    Raises:
        UserError: one is no result of that lesson, or there are not two.
    """
    if len(files) > MOST_FILES:
        raise UserError(f"--compare: {len(files):,} files; name {MOST_FILES:,} at most")
    results = [read(name, Path(file)) for file in files]
    kept = list({msgspec.json.encode(each.to_dict()): each for each in results}.values())
    size, _ = Counter(each.size for each in kept).most_common(1)[0] if kept else ("default", 0)
    others = sum(each.size != size for each in kept)
    kept = [each for each in kept if each.size == size]
    if len(kept) < _FEWEST:
        raise UserError(f"--compare needs two different results of one size, and found {len(kept)}")
    return together(kept, len(results) - others - len(kept), others)


def read(name: str, path: Path) -> Result:
    """A result that was written as JSON.

    Raises:
        UserError: it cannot be read, or is none of that lesson.
    """
    shown = clean(path, most=200)
    try:
        with path.open("rb") as file:
            text = file.read(MOST_BYTES + 1)
        result = msgspec.json.decode(text, type=Result)
    except OSError as error:
        raise UserError(f"--compare: {shown}: {clean(error.strerror or error, most=200)}") from None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise UserError(
            f"--compare: {shown} is not a lesson result ({clean(error, most=100)}); latlab lesson "
            f"{name} --out FILE.json writes one"
        ) from None
    if len(text) > MOST_BYTES or result.schema != SCHEMA:
        raise UserError(f"--compare: {shown} is not a lesson result of this version of latlab")
    if not result.machine:
        raise UserError(f"--compare: {shown} is itself a comparison; name the results that it was made from")
    if result.name != name:
        raise UserError(f"--compare: {shown} is a result of the lesson {clean(result.name, most=60)}")
    return replace(result, run=None, charts=())


def together(results: Sequence[Result], same: int = 0, sizes: int = 0) -> Result:
    """What the results of one lesson and one size say together.

    Args:
        results: In the order in which machines are called.
        same: How many were left out because they are the same file again.
        sizes: How many were left out because they have another size.

    Raises:
        UserError: they have no figure in common.
    """
    first, lesson = results[0], named(results[0].name)
    figures = list(figures_of(results))
    if not any(len(figure.cells) >= _FEWEST for _, figure in figures):
        figures = list(figures_of(results, every=True))
    asked = None if lesson.GUESS is None else lesson.GUESS.cell
    of_guess = [figure for path, figure in figures if path == asked]
    shared = [figure for _, figure in figures if len(figure.cells) >= _FEWEST]
    key = next(iter([each for each in of_guess if len(each.cells) >= _FEWEST] + shared), None)
    if key is None:
        raise UserError(f"--compare: no figure of {first.name} is in two of the results")
    apart = key.apart()
    said = reported(
        __name__,
        key=key,
        here={place: replace(cell, published=None) for place, cell in key.cells.items()},
        results=results,
        shared=shared,
        # Figures of the smallest sizes are not the source's.
        beside=[] if first.size == "small" else shared,
        apart=apart,
        why={place: list(unlike(results, place, apart)) for place in apart},
        times={place: _from_middle(key, place) for place in apart},
        guesses=[_line(each.asked.guess) if each.asked else "" for each in results],
        question=lesson.GUESS.question if lesson.GUESS and key in of_guess else "",
        same=same,
        sizes=sizes,
        size_name=first.size,
        facts=facts,
    )
    return Result(
        name=first.name,
        question=lesson.QUESTION,
        origin=lesson.ORIGIN,
        size=first.size,
        plain=all(each.plain for each in results),
        tool=version(),
        started=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        seconds=sum(each.seconds for each in results),
        machine={},
        programs=(),
        **vars(said),
    )


def figures_of(results: Sequence[Result], *, every: bool = False) -> Iterator[tuple[str, Figure]]:
    """Figures with a published one, and that which is guessed, or all: the path, and it on all machines."""
    guess = named(results[0].name).GUESS
    titles: dict[str, tuple[str, str]] = {}
    cells: dict[str, dict[int, Cell]] = {}
    for place, result in enumerate(results):
        for path, table, row, column, cell in result.figures():
            if cell.number is None or not math.isfinite(cell.number):
                continue
            if not every and cell.published is None and (guess is None or path != guess.cell):
                continue
            several = f", {column.title}" if len(table.columns) > 1 else ""
            titles.setdefault(path, (_line(table.title), _line(f"{row.title}{several}")))
            cells.setdefault(path, {})[place] = cell
    often = Counter(title for _, title in titles.values())
    for path, found in cells.items():
        table_title, title = titles[path]
        unit = next(iter(found.values())).unit
        alike = {place: cell for place, cell in found.items() if cell.unit == unit}
        published = next((cell.published for cell in alike.values() if cell.published), None)
        yield path, Figure(title if often[title] == 1 else f"{table_title}: {title}", alike, published)


def _line(text: str) -> str:
    """A title of somebody else's file, as a cell of the template."""
    return clean(text, most=200).replace("|", "/")


def facts(result: Result) -> dict[str, str]:
    """What a result says of its machine and how it was measured, by what it is called."""
    found = {title: _line(result.machine[name]) for name, title in _FACTS.items() if result.machine.get(name)}
    found["latlab"] = _line(result.tool)
    refused = any("probe" in each.what for each in result.missing)
    found["Rust probes"] = "not run" if result.plain or refused else "run"
    return found


def unlike(results: Sequence[Result], place: int, apart: Sequence[int]) -> Iterator[str]:
    """In what a machine differs from most of those that are no outliers, and what it doubts itself."""
    others = [facts(each) for number, each in enumerate(results) if number not in apart]
    for title, own in facts(results[place]).items():
        usual, many = Counter(each.get(title, "") for each in others).most_common(1)[0]
        if own != usual and usual and many * 2 > len(others):
            yield f"its {title} is {own}; {many} of {len(others)} others have {usual}"
    common = Counter(
        doubt for number, each in enumerate(results) if number not in apart for doubt in each.doubts
    )
    yield from (
        _line(doubt).rstrip(".") for doubt in results[place].doubts if common[doubt] * 2 < len(others)
    )


def _from_middle(figure: Figure, place: int) -> str:
    own, middle = figure.numbers[place], figure.median.number or 0.0
    if figure.median.unit == "share" or middle <= 0 or own <= 0:
        return f"{written(own, figure.median.unit)}, the median is {written(middle, figure.median.unit)}"
    return f"{format_factor(own / middle, 2)} times the median"
