"""Insertion of new keys into a dictionary that grows from empty to 1,024."""

NAMES = [f"name{number}" for number in range(1024)]
ROWS = [tuple(NAMES[first : first + 16]) for first in range(0, 1024, 16)]


def run(n: int) -> int:
    """Inserts `n` keys, a multiple of 1,024, into dictionary after dictionary; how many these hold."""
    rows = ROWS
    held = 0
    for turn in range(n // 1024):
        table: dict[str, int] = {}
        for a, b, c, d, e, f, g, h, i, j, k, m, o, p, q, r in rows:
            table[a] = turn
            table[b] = turn
            table[c] = turn
            table[d] = turn
            table[e] = turn
            table[f] = turn
            table[g] = turn
            table[h] = turn
            table[i] = turn
            table[j] = turn
            table[k] = turn
            table[m] = turn
            table[o] = turn
            table[p] = turn
            table[q] = turn
            table[r] = turn
        held = held + len(table)
    return held
