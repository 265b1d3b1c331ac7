"""Which machine of many is slow: each against the others of its kind, at a known rate of false alarms."""

from __future__ import annotations

from latlab.fleet.cluster import survey
from latlab.fleet.linked import links
from latlab.fleet.survey import Failure, Reason, Standing, Survey, merge

__all__ = ["Failure", "Reason", "Standing", "Survey", "links", "merge", "survey"]
