"""Lookup in a dictionary of 1,024 strings: what is found is the next key of a cycle through all."""

NAMES = [f"name{number}" for number in range(1024)]
# An odd step meets each key once, and not in the order in which they lie in memory.
TABLE = {NAMES[number]: NAMES[(number + 389) % 1024] for number in range(1024)}


def run(n: int) -> int:
    """Looks up `n` keys, a multiple of 16; the number of the one where that ends."""
    table = TABLE
    name = NAMES[0]
    for _ in range(n // 16):
        name = table[name]
        name = table[name]
        name = table[name]
        name = table[name]
        name = table[name]
        name = table[name]
        name = table[name]
        name = table[name]
        name = table[name]
        name = table[name]
        name = table[name]
        name = table[name]
        name = table[name]
        name = table[name]
        name = table[name]
        name = table[name]
    return int(name.removeprefix("name"))
