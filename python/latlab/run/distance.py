"""How long light takes from London to California and back: what no network can be faster than."""

from __future__ import annotations

from typing import Final

#: Great circle between London and San Francisco, metres.
DISTANCE_M: Final = 8_616_000
#: Light in fibre goes at 1/1.468 of its speed in vacuum (ITU-T G.652).
FIBRE_M_PER_S: Final = 299_792_458 / 1.468
#: There and back along the great circle, in fibre.
FLOOR_NS: Final = 2e9 * DISTANCE_M / FIBRE_M_PER_S
#: A usual round trip between the two, with the detours and the routers in it; what `--distance
#: london-california` emulates.
USUAL_NS: Final = 140e6
