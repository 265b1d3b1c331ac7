"""`latlab` that measures some points of its probes only: `python some_points.py WANTED ARGUMENTS`.

WANTED is JSON, a list of objects. A point is measured where it has all fields of one of them; all others
count as measured already. A measuring process that has no time says which points a round would have.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from latlab.cli import main
from latlab.run.process import Worker

START = Worker.start


def points(command: list[str], request: dict[str, object]) -> list[tuple[str, dict[str, Any]]]:
    """Those of a round, each with its probe."""
    worker = START(command, request | {"begun_ns": 1, "ends_ns": 1})
    said, _ = worker.process.communicate()
    events = map(json.loads, said.splitlines())
    records = [event["record"] for event in events if event["event"] == "record"]
    return [(record["probe"], point) for record in records for point in record["findings"]["points"]]


class SomePoints(Worker):
    """A measuring process that is asked for what is wanted."""

    @classmethod
    def start(cls, command: list[str], request: dict[str, Any], kept: tuple[int, ...] = ()) -> Worker:
        wanted = [fields.items() for fields in json.loads(sys.argv[1])]
        not_wanted = [
            (probe, point)
            for probe, point in points(command, request)
            if not any(fields <= point.items() for fields in wanted)
        ]
        return START(command, request | {"done": [*request["done"], *not_wanted]}, kept)


Worker.start = SomePoints.start  # type: ignore[method-assign]
sys.exit(main.run(sys.argv[2:]))
