"""String from pieces, all joined at once."""

ELEMENTS = 1000
PIECES = [f"{number:08d}" for number in range(ELEMENTS)]
WHOLE = "".join(PIECES)


def run(n: int) -> int:
    """Makes `n` strings; their length together, 0 when the last one is wrong."""
    pieces = PIECES
    length = 0
    for _ in range(n):
        text = "".join(pieces)
        length = length + len(text)
    return length if text == WHOLE else 0
