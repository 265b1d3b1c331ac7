"""List as a literal of numbers, which replaces the one written here when it is to be longer."""

ELEMENTS = 10
# Up to here a turn of the loop would count beside the list: sixteen lists are made in each.
FEW = 100


def sixteen(n: int) -> int:
    """Makes `n` lists, a multiple of 16; the last items of the last sixteen, two lengths, the last turn."""
    for turn in range(n // 16):  # noqa: B007 - returned
        a = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
        b = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
        c = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
        d = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
        e = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
        f = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
        g = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
        h = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
        i = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
        j = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
        k = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
        m = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
        o = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
        p = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
        q = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
        r = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
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
    for turn in range(n):  # noqa: B007 - returned
        made = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    return made[0] + made[-1] + len(made) + turn


run = sixteen if ELEMENTS <= FEW else one_by_one
