"""Stages of a Python program: what `latlab explain` joins with where the time went, and a table without it.

    import latlab
    with latlab.stage("read") as read:
        data = file.read()
        read.bytes = len(data)

    @latlab.stage("parse")
    def parse(text): ...

    for line in latlab.stage("read").over(file):  # the time that producing each line takes
        ...

Marks cost a few hundred nanoseconds with a listener: `latlab explain`, or the program itself after
`latlab.stages.start()`. Without one, a decorator gives back the function, `over` the iterator, and a
block costs two calls. A decorator looks once, when the function is defined.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import json
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from latlab import _core
from latlab._core import stage

__all__ = ["Stage", "decorated", "environment", "heard", "stage", "start", "table"]


@dataclasses.dataclass(frozen=True, slots=True)
class Stage:
    """What was recorded of one stage."""

    name: str
    #: How often it ran, and how often the program ended in it.
    count: int
    cut: int
    #: Time in it, summed over threads; and outside the stages that lie in it.
    seconds: float
    self_seconds: float
    #: What it went through; None where that was never said.
    bytes: int | None
    min_ns: float
    max_ns: float


_FIELDS = tuple(field.name for field in dataclasses.fields(Stage))


def start() -> None:
    """Listens to the stages of this process, and of what it forks, from now on. Linux only.

    Raises:
        OSError: There is no memory for it, or this is no Linux.
    """
    _core.stages_start()


def environment() -> dict[str, str]:
    """What to add to the environment of programs that this one starts, to record their stages too."""
    return dict(_core.stages_environment())


def heard() -> list[Stage]:
    """The stages so far, the longest first; none where `start` was not called."""
    return _heard()[0]


def _heard() -> tuple[list[Stage], int]:
    """The stages, and the number of marks that were lost."""
    text = _core.stages_heard()
    if text is None:
        return [], 0
    reported = json.loads(text)
    return [Stage(**{name: row[name] for name in _FIELDS}) for row in reported["stages"]], reported["lost"]


def table() -> str:
    """The stages so far as text."""
    from latlab.units import format_bytes, format_ns  # noqa: PLC0415 - not needed to mark

    rows, lost = _heard()
    if not rows:
        return "no stage was recorded; call latlab.stages.start() before the first one"
    width = max(len("stage"), *(len(row.name) for row in rows))
    lines = [f"{'stage':<{width}}  {'times':>9}  {'total':>9}  {'own':>9}  {'each':>9}  {'bytes':>9}"]
    for row in rows:
        gone_through = "-" if row.bytes is None else format_bytes(row.bytes)
        each = format_ns(row.seconds / row.count * 1e9)
        lines.append(
            f"{row.name:<{width}}  {row.count:>9,}  {format_ns(row.seconds * 1e9):>9}"
            f"  {format_ns(row.self_seconds * 1e9):>9}  {each:>9}  {gone_through:>9}"
        )
    if lost:
        lines.append(
            f"{lost:,} marks were lost: they came faster than they could be read, so stages are missing"
        )
    return "\n".join(lines)


def decorated(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, each call of which is a stage; of a generator each step, of a coroutine all of it."""
    if inspect.isasyncgenfunction(function):

        @functools.wraps(function)
        async def items_later(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:  # noqa: ANN401 - anybody's function
            with stage(name):
                async for item in function(*args, **kwargs):
                    yield item

        return items_later
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def later(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - anybody's function
            with stage(name):
                return await function(*args, **kwargs)

        return later
    if inspect.isgeneratorfunction(function):

        @functools.wraps(function)
        def items(*args: Any, **kwargs: Any) -> Iterator[Any]:  # noqa: ANN401 - anybody's function
            return iter(stage(name).over(function(*args, **kwargs)))

        return items

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - anybody's function
        with stage(name):
            return function(*args, **kwargs)

    return called
