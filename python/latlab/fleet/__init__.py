"""Which machine of many is slow: each against the others of its kind, at a known rate of false alarms."""

from __future__ import annotations

from latlab.fleet.survey import Reason, Standing, Survey, merge, survey

__all__ = ["Reason", "Standing", "Survey", "merge", "survey"]
