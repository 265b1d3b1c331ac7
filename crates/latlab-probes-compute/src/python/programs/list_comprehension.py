"""List by a comprehension."""

ELEMENTS = 1000
# Up to here a turn of the loop would count beside the list: sixteen lists are made in each.
FEW = 100


def sixteen(n: int) -> int:
    """Makes `n` lists, a multiple of 16; the last items of the last sixteen, two lengths, the last turn."""
    elements = ELEMENTS
    for turn in range(n // 16):
        a = [turn for _ in range(elements)]
        b = [turn for _ in range(elements)]
        c = [turn for _ in range(elements)]
        d = [turn for _ in range(elements)]
        e = [turn for _ in range(elements)]
        f = [turn for _ in range(elements)]
        g = [turn for _ in range(elements)]
        h = [turn for _ in range(elements)]
        i = [turn for _ in range(elements)]
        j = [turn for _ in range(elements)]
        k = [turn for _ in range(elements)]
        m = [turn for _ in range(elements)]
        o = [turn for _ in range(elements)]
        p = [turn for _ in range(elements)]
        q = [turn for _ in range(elements)]
        r = [turn for _ in range(elements)]
    last = (
        a[-1]
        + b[-1]
        + c[-1]
        + d[-1]
        + e[-1]
        + f[-1]
        + g[-1]
        + h[-1]
        + i[-1]
        + j[-1]
        + k[-1]
        + m[-1]
        + o[-1]
        + p[-1]
        + q[-1]
        + r[-1]
    )
    return last + len(a) + len(r) + turn


def one_by_one(n: int) -> int:
    """Makes `n` lists; both ends of the last one, its length, the last turn."""
    elements = ELEMENTS
    for turn in range(n):
        made = [turn for _ in range(elements)]
    return made[0] + made[-1] + len(made) + turn


run = sixteen if ELEMENTS <= FEW else one_by_one
