"""NumPy arithmetic in place: the array is added to."""

import numpy

ELEMENTS = 1000
ONES = numpy.ones(ELEMENTS)
STATE = [numpy.zeros(ELEMENTS)]


def run(n: int) -> int:
    """Adds one to all elements `n` times; by how much the first and the last one have grown together."""
    ones = ONES
    values = STATE[0]
    before = int(values[0]) + int(values[-1])
    for _ in range(n // 16):
        values += ones
        values += ones
        values += ones
        values += ones
        values += ones
        values += ones
        values += ones
        values += ones
        values += ones
        values += ones
        values += ones
        values += ones
        values += ones
        values += ones
        values += ones
        values += ones
    for _ in range(n % 16):
        values += ones
    STATE[0] = values
    return int(values[0]) + int(values[-1]) - before
