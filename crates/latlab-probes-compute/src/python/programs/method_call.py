"""Method call: a method of one argument, called with what the call before it returned."""


class Holder:
    """Has the method."""

    def given(self, value: int) -> int:
        """The least that a method can do with its argument."""
        return value


def run(n: int) -> int:
    """Calls it `n` times, a multiple of 16; how many turns came through."""
    holder = Holder()
    turn = 0
    for _ in range(n // 16):
        a = holder.given(turn)
        b = holder.given(a)
        c = holder.given(b)
        d = holder.given(c)
        e = holder.given(d)
        f = holder.given(e)
        g = holder.given(f)
        h = holder.given(g)
        i = holder.given(h)
        j = holder.given(i)
        k = holder.given(j)
        m = holder.given(k)
        o = holder.given(m)
        p = holder.given(o)
        q = holder.given(p)
        r = holder.given(q)
        turn = r + 1
    return turn
