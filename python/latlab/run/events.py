"""What the measuring process tells, event by event: one JSON object a line of its pipe."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TypeAlias

import msgspec

from latlab.run import model


class Hello(msgspec.Struct, frozen=True, tag_field="event", tag="hello"):
    """The worker of a round describes the machine, the plan of a pass, and what is left of the run.

    `cpus` are those that the run's rounds take in turn, `cpu` that of this `round`; `rounds` are those of a
    pass, of which the `idle` ones measure nothing. The run measures for `left_s` more and writes
    `written_bytes` in all, at most; each further pass writes up to `again_bytes` of that.
    """

    machine: model.Machine
    clock: model.ClockFacts
    tool: model.Tool
    plan: tuple[model.PlannedProbe, ...]
    rounds: int = 1
    idle: tuple[int, ...] = ()
    cpus: tuple[int, ...] = ()
    round: int = 0
    cpu: int = 0
    left_s: float = 0.0
    written_bytes: int = 0
    again_bytes: int = 0


class Begin(msgspec.Struct, frozen=True, tag_field="event", tag="begin"):
    """A point is about to be visited, which writes `most_bytes` at most; the run had written so much."""

    probe: str
    point: model.Point
    written_bytes: int = 0
    most_bytes: int = 0


class Progress(msgspec.Struct, frozen=True, tag_field="event", tag="progress"):
    """How far it is: a label for people, and the median so far in `unit`.

    The conductor adds the seconds since the run began, those that it has left at most, and how much of its
    time has passed, from 0 to 1.
    """

    probe: str
    point: str
    unit: str
    p50: float | None = None
    elapsed_s: float = 0.0
    left_s: float = 0.0
    fraction: float = 0.0


class Recorded(msgspec.Struct, frozen=True, tag_field="event", tag="record"):
    """A point is done. `raw` is the record as the core wrote it."""

    raw: msgspec.Raw = msgspec.field(name="record")

    @property
    def record(self) -> model.Record:
        """The record, decoded."""
        return RECORD.decode(self.raw)


class TestFile(msgspec.Struct, frozen=True, tag_field="event", tag="testfile"):
    """The disk's test file is laid out: this descriptor of the worker's."""

    fd: int


class Further(msgspec.Struct, frozen=True, tag_field="event", tag="further"):
    """What a probe would like to measure besides in the rounds to come: points as the core plans them."""

    probe: str
    points: tuple[msgspec.Raw, ...]


class End(msgspec.Struct, frozen=True, tag_field="event", tag="end"):
    """The round is done."""

    stopped_by: str
    totals: model.Totals = model.Totals()


class Fatal(msgspec.Struct, frozen=True, tag_field="event", tag="fatal"):
    """The worker cannot measure at all."""

    text: str


@dataclass(frozen=True, slots=True)
class Died:
    """The worker died; `text` says how. Comes from the conductor, not from the worker."""

    probe: str
    point: str
    text: str
    restarts: bool


Event: TypeAlias = Hello | Begin | Progress | Recorded | TestFile | Further | End | Fatal
Listener: TypeAlias = Callable[[Event | Died], object]

RECORD = msgspec.json.Decoder(model.Record)
EVENT = msgspec.json.Decoder(Event, dec_hook=model.to_machine)
DAMAGE = (msgspec.MsgspecError, ValueError, RecursionError)


def plain(event: Event | Died) -> dict[str, model.Json]:
    """An event as the JSON object that it was, its record decoded; `Died` has `"event": "died"`."""
    if isinstance(event, Died):
        return {"event": "died", **asdict(event)}
    if isinstance(event, Recorded):
        return {"event": "record", "record": msgspec.json.decode(event.raw)}
    if isinstance(event, Further):
        points = [msgspec.json.decode(point) for point in event.points]
        return {"event": "further", "probe": event.probe, "points": points}
    fields: dict[str, model.Json] = msgspec.to_builtins(event, enc_hook=model.from_machine)
    return fields
