"""What the measuring process tells, event by event: one JSON object a line of its pipe."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TypeAlias

import msgspec

from latlab.run import model


class Hello(msgspec.Struct, frozen=True, tag_field="event", tag="hello"):
    """The worker describes the machine and its plan, and how much it will write at most."""

    machine: model.Machine
    clock: model.ClockFacts
    tool: model.Tool
    plan: tuple[model.PlannedProbe, ...]
    home_cpu: int = 0
    cpus: tuple[int, ...] = ()
    written_bytes: int = 0


class Begin(msgspec.Struct, frozen=True, tag_field="event", tag="begin"):
    """A point is about to be visited; so much was written before."""

    probe: str
    point: model.Point
    written_bytes: int = 0


class Progress(msgspec.Struct, frozen=True, tag_field="event", tag="progress"):
    """How far it is: a label for people, the median so far in `unit`, seconds, and a fraction from 0 to 1."""

    probe: str
    point: str
    unit: str
    elapsed_s: float
    left_s: float
    fraction: float
    p50: float | None = None


class Recorded(msgspec.Struct, frozen=True, tag_field="event", tag="record"):
    """A point is done. `raw` is the record as the core wrote it."""

    raw: msgspec.Raw = msgspec.field(name="record")

    @property
    def record(self) -> model.Record:
        """The record, decoded."""
        return RECORD.decode(self.raw)


class Again(msgspec.Struct, frozen=True, tag_field="event", tag="again"):
    """All records were told; what was measured is looked at again, which makes none."""


class End(msgspec.Struct, frozen=True, tag_field="event", tag="end"):
    """The worker is done."""

    stopped_by: str
    totals: model.Totals = model.Totals()
    looked_again: tuple[model.LookedAgain, ...] = ()


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


Event: TypeAlias = Hello | Begin | Progress | Recorded | Again | End | Fatal
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
    fields: dict[str, model.Json] = msgspec.to_builtins(event, enc_hook=model.from_machine)
    return fields
