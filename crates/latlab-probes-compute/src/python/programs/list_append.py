"""List by appending in a loop."""

ELEMENTS = 1000


def run(n: int) -> int:
    """Makes `n` lists; both ends of the last one, its length, the last turn."""
    elements = ELEMENTS
    for turn in range(n):
        made: list[int] = []
        for _ in range(elements):
            made.append(turn)  # noqa: PERF401 - this is what is measured
    return made[0] + made[-1] + len(made) + turn
