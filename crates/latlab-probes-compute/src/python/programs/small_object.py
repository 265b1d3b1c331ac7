"""Small object: an instance of a class whose `__init__` sets two attributes; the one it replaces is freed."""


class Pair:
    """Two attributes."""

    def __init__(self, first: int, second: int) -> None:
        self.first = first
        self.second = second


def run(n: int) -> int:
    """Makes `n` of them, a multiple of 16; the sum of the last sixteen's first attributes."""
    for turn in range(n // 16):
        a = Pair(turn, 0)
        b = Pair(turn, 1)
        c = Pair(turn, 2)
        d = Pair(turn, 3)
        e = Pair(turn, 4)
        f = Pair(turn, 5)
        g = Pair(turn, 6)
        h = Pair(turn, 7)
        i = Pair(turn, 8)
        j = Pair(turn, 9)
        k = Pair(turn, 10)
        m = Pair(turn, 11)
        o = Pair(turn, 12)
        p = Pair(turn, 13)
        q = Pair(turn, 14)
        r = Pair(turn, 15)
    return (
        a.first
        + b.first
        + c.first
        + d.first
        + e.first
        + f.first
        + g.first
        + h.first
        + i.first
        + j.first
        + k.first
        + m.first
        + o.first
        + p.first
        + q.first
        + r.first
    )
