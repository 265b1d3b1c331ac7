"""NumPy array of zeros; the one that it replaces is freed."""

from collections.abc import Callable

import numpy

ELEMENTS = 1000
Create = Callable[[int], "numpy.ndarray[tuple[int], numpy.dtype[numpy.float64]]"]


def run(n: int, create: Create = numpy.zeros) -> int:
    """Makes `n` arrays; the size of the last one."""
    elements = ELEMENTS
    for _ in range(n // 16):
        made = create(elements)
        made = create(elements)
        made = create(elements)
        made = create(elements)
        made = create(elements)
        made = create(elements)
        made = create(elements)
        made = create(elements)
        made = create(elements)
        made = create(elements)
        made = create(elements)
        made = create(elements)
        made = create(elements)
        made = create(elements)
        made = create(elements)
        made = create(elements)
    for _ in range(n % 16):
        made = create(elements)
    return made.size


def audit(n: int, audited: Callable[[int, Create], int] = run) -> int:
    """The elements of all arrays that `run` makes: the same code with a creator that counts."""
    sizes = []

    def counted(elements: int) -> "numpy.ndarray[tuple[int], numpy.dtype[numpy.float64]]":
        made = numpy.zeros(elements)
        sizes.append(made.size)
        return made

    audited(n, counted)
    return sum(sizes)
