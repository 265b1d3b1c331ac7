"""A turn of the loop around the other programs' operations, with nothing in it but the count."""


def run(n: int) -> int:
    """A sixteenth of `n` turns, as around sixteen operations a turn; how many."""
    turn = 0
    for _ in range(n // 16):
        turn = turn + 1
    return turn
