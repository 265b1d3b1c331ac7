"""Function call: a Python function of one argument, called with what the call before it returned."""


def given(value: int) -> int:
    """The least that a function can do with its argument."""
    return value


def run(n: int) -> int:
    """Calls it `n` times, a multiple of 16; how many turns came through."""
    turn = 0
    for _ in range(n // 16):
        a = given(turn)
        b = given(a)
        c = given(b)
        d = given(c)
        e = given(d)
        f = given(e)
        g = given(f)
        h = given(g)
        i = given(h)
        j = given(i)
        k = given(j)
        m = given(k)
        o = given(m)
        p = given(o)
        q = given(p)
        r = given(q)
        turn = r + 1
    return turn
