"""One transfer by its phases: connection set-up cost, and what the bytes themselves take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from latlab.run.findings import ends, positive
from latlab.run.run import Run
from latlab.topics import transfers
from latlab.units import ONCE, format_ns
from latlab.view.plot import Drawing, Row
from latlab.view.table import Table, table_of
from latlab.view.topic import Chart

if TYPE_CHECKING:
    import altair as alt

    from latlab.view.drawing import AnyChart

#: Longer ones would leave the others no room.
_LARGEST_BYTES: Final = 1 << 20
_MODEL: Final = "model"
#: Pixels of the whole, of the names beside a panel, and of a row.
_WIDTH, _LABELS, _ROW = 720, 130, 30


@dataclass(frozen=True, slots=True)
class Single:
    """One transfer alone.

    Attributes:
        kind: What it is.
        time_ns: Median of all of it.
        ends: Its 95 % interval; absent where there are too few blocks.
        phases: Median of each phase, in order.
        model_ns: What the model says; absent where it says nothing.
        verdict: What limits it; absent where that is not known.
    """

    kind: transfers.Kind
    time_ns: float
    ends: tuple[float, float] | None
    phases: dict[str, float]
    model_ns: float | None
    verdict: str | None

    @property
    def name(self) -> str:
        """`100 KiB, new`."""
        protocol = "" if self.kind.protocol == "http/1.1" else f", {self.kind.protocol}"
        return f"{self.kind.size}, {self.kind.connections}{protocol}"


def singles(run: Run) -> list[Single]:
    """Every single transfer, small ones first, new connections before kept ones."""
    found = []
    for row in transfers.rows(run, "singles"):
        kind, time_ns = transfers.kind_of(row), positive(row, "time_ns")
        if kind is None or time_ns is None:
            continue
        own = row.section("phases_ns")
        phases = {name: ns for name in transfers.PHASES if (ns := positive(own, name)) is not None}
        between, model_ns = ends(row, "time_ns"), positive(row, "model.time_ns")
        found.append(Single(kind, time_ns, between, phases, model_ns, row.text("verdict")))
    paths = list(transfers.PATHS)
    order = ("new", "kept")
    return sorted(
        found,
        key=lambda one: (
            paths.index(one.kind.path),
            one.kind.protocol != "http/1.1",
            order.index(one.kind.connections),
            one.kind.file_bytes,
        ),
    )


def drawn(own: Sequence[Single]) -> dict[str, list[Single]]:
    """Those of which a bar is drawn, by path."""
    found: dict[str, list[Single]] = {}
    for one in own:
        if one.phases and one.kind.file_bytes <= _LARGEST_BYTES:
            found.setdefault(one.kind.path, []).append(one)
    return found


def _measured(run: Run) -> list[Single] | None:
    own = singles(run)
    return own if drawn(own) else None


def _caption(run: Run) -> str:
    modelled = any(one.model_ns is not None for own in drawn(singles(run)).values() for one in own)
    return (
        "Medians of one transfer at a time. connect and tls: one round trip each; first-byte: the "
        "request's round trip; last-byte: the rest of the body."
        # Where a path was measured, and with it the model.
        + (
            " Over a path, a new connection mostly waits there for its window to grow. The tick is "
            "the model's time, from this run's round trip and rate and the file's size."
            if modelled
            else ""
        )
    )


def _picture(own: Sequence[Single]) -> Drawing:
    parts = []
    for path, of in drawn(own).items():
        for one in of:
            phases = ", ".join(f"{name} {format_ns(ns)}" for name, ns in one.phases.items())
            parts.append(f"{transfers.PATHS[path]}, {one.name}: {format_ns(one.time_ns)} ({phases})")
    about = "Stacked bars: one transfer by its phases, by size."
    return Drawing(f"{about} {'; '.join(parts)}.", lambda: _drawn(drawn(own)))


def _drawn(panels: dict[str, list[Single]]) -> AnyChart:
    """One panel a path with its own axis; a bar is one transfer in its phases, a tick the model."""
    import altair as alt  # noqa: PLC0415 - only who draws needs it

    seen = {phase for own in panels.values() for one in own for phase in one.phases}
    phases = [phase for phase in transfers.PHASES if phase in seen]
    width = _WIDTH // len(panels) - _LABELS
    drawn_panels = [_panel(transfers.PATHS[path], own, phases, width) for path, own in panels.items()]
    return alt.hconcat(*drawn_panels, spacing=16)


def _panel(title: str, own: list[Single], phases: list[str], width: int) -> alt.LayerChart:
    import altair as alt  # noqa: PLC0415 - only who draws needs it

    from latlab.view.axes import DURATION_FROM_ZERO, names_y  # noqa: PLC0415 - as above
    from latlab.view.drawing import inline, layered  # noqa: PLC0415 - as above

    longest = max(sum(one.phases.values()) for one in own)
    values: list[Row] = []
    sums, models = [], []
    for one in own:
        at = 0.0
        for phase in phases:
            part = one.phases.get(phase, 0.0)
            if part:
                values.append(
                    {
                        "row": one.name,
                        "phase": phase,
                        "from": at,
                        "to": at + part,
                        "text": f"{one.name}: {phase} {format_ns(part)}",
                    }
                )
            at += part
        sums.append({"row": one.name, "to": max(at, one.model_ns or 0.0), "text": format_ns(one.time_ns)})
        if one.model_ns is not None:
            text = f"{one.name}: the model says {format_ns(one.model_ns)}"
            models.append({"row": one.name, "to": one.model_ns, "text": text})
    names = [one.name for one in own]
    y = names_y("row", names, {"labelPadding": 6, "labelLimit": 190}, paddingInner=0.3)
    x = alt.X(
        "from:Q",
        title="one transfer",
        scale=alt.Scale(domain=[0, 1.4 * longest], nice=False),
        axis=alt.Axis(labelExpr=DURATION_FROM_ZERO, tickCount=3, grid=True),
    )
    color = alt.Color("phase:N", legend=alt.Legend(title=None), scale=alt.Scale(domain=phases))
    bars = alt.Chart(inline(values))
    layers = [
        bars.mark_bar(height=18).encode(
            x=x, x2=alt.X2("to:Q"), y=y, color=color, tooltip=alt.Tooltip("text:N")
        ),
        alt.Chart(inline(sums))
        .mark_text(style="name", align="left", dx=7)
        .encode(x=alt.X("to:Q"), y=y, text=alt.Text("text:N")),
    ]
    if models:
        tick = alt.Chart(inline(models)).mark_tick(thickness=2, size=26, style="crossed")
        layers.append(tick.encode(x=alt.X("to:Q"), y=y, tooltip=alt.Tooltip("text:N")))
    return layered(layers, width=width, height=_ROW * len(names), title=title)


def _table(own: Sequence[Single]) -> Table:
    """Every phase of every single transfer, and the model beside it."""

    def phase(one: Single, name: str) -> float | None:
        return one.phases.get(name)

    return table_of(
        own,
        ("path", "text", lambda one: transfers.PATHS[one.kind.path]),
        ("transfer", "text", lambda one: one.name),
        *((name, "ns", partial(phase, name=name)) for name in transfers.PHASES),
        ("all of it", "ns", lambda one: one.time_ns),
        ("95 % from", "ns", lambda one: one.ends[0] if one.ends else ONCE),
        ("95 % to", "ns", lambda one: one.ends[1] if one.ends else None),
        (_MODEL, "ns", lambda one: one.model_ns),
        ("limited by", "text", lambda one: one.verdict or "unknown"),
    )


CHART: Final = Chart(
    id="network_phases",
    title="Where does the time of one transfer go?",
    caption=_caption,
    probe=transfers.PROBE,
    measured=_measured,
    picture=_picture,
    table=_table,
)
