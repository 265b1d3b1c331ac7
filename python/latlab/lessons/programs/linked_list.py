"""A linked list in Python: objects, tuples, and what Python has instead of one."""

from __future__ import annotations

import sys
import time
import tracemalloc
from array import array
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

TEXT = b"This is a sample tex"


class Node:
    """As one writes it first: the attributes are in a dictionary of its own."""

    def __init__(self, text: bytes) -> None:
        self.next: Node | None = None
        self.text = text


class Slotted:
    """The attributes have fixed places."""

    __slots__ = ("next", "text")

    def __init__(self, text: bytes) -> None:
        self.next: Slotted | None = None
        self.text = text


def from_class(n: int, make: Any = Node) -> Any:
    """An object a node, each with a link to the next."""
    first = last = make(TEXT)
    for _ in range(n - 1):
        node = make(TEXT)
        last.next = node
        last = node
    return first


def from_slots(n: int) -> Any:
    """The same with fixed places."""
    return from_class(n, Slotted)


def from_tuples(n: int) -> Any:
    """Pairs of a text and the rest, made from the end."""
    rest: Any = None
    for _ in range(n):
        rest = (TEXT, rest)
    return rest


def from_deque(n: int) -> Any:
    """A linked list of the standard library, in C: 64 texts a node."""
    made: deque[bytes] = deque()
    for _ in range(n):
        made.append(TEXT)
    return made


def from_list(n: int) -> Any:
    """No links at all: one block of references."""
    made: list[bytes] = []
    add = made.append
    for _ in range(n):
        add(TEXT)
    return made


def from_array(n: int) -> Any:
    """No objects at all: one array of links by number, and the bytes of all texts, 20 a node."""
    links, texts = array("i", bytes(4 * n)), bytearray(20 * n)
    for number in range(n):
        texts[20 * number : 20 * number + 20] = TEXT
        links[number] = number + 1
    links[n - 1] = -1
    return links, texts


WAYS: dict[str, Callable[[int], Any]] = {
    "class": from_class,
    "slots": from_slots,
    "tuples": from_tuples,
    "deque": from_deque,
    "list": from_list,
    "array": from_array,
}


def texts_of(made: Any) -> Iterator[bytes]:
    """From the first node to the last."""
    if isinstance(made, deque | list):
        yield from made
    elif isinstance(made, tuple) and isinstance(made[0], array):
        links, texts = made
        number = 0
        while number >= 0:
            yield texts[20 * number : 20 * number + 20]
            number = links[number]
    elif isinstance(made, tuple):
        while made is not None:
            text, made = made
            yield text
    else:
        while made is not None:
            yield made.text
            made = made.next


def create(way: str, n: int) -> tuple[float, float, float]:
    """Seconds to create a list of n nodes, to walk it, and to give it back."""
    begin = time.perf_counter()
    made = WAYS[way](n)
    created = time.perf_counter()
    whole = sum(text == TEXT for text in texts_of(made))
    walked = time.perf_counter()
    del made
    freed = time.perf_counter()
    assert whole == n
    return created - begin, walked - created, freed - walked


def bytes_of(way: str, n: int) -> int:
    """What Python's allocator was asked for."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        made = WAYS[way](n)
        taken = tracemalloc.get_traced_memory()[0] - before
        del made
        return taken
    finally:
        tracemalloc.stop()


def bytes_a_node(way: str, n: int) -> float:
    """Of the second half: the first may come from what Python keeps, as it does 2,000 tuples."""
    return (bytes_of(way, 2 * n) - bytes_of(way, n)) / n


if __name__ == "__main__":
    nodes = 10_000 if "--small" in sys.argv else 1_000_000
    for name in WAYS:
        creating, walking, freeing = create(name, nodes)
        print(
            f"{name:8} {bytes_a_node(name, 10_000):6.1f} bytes a node; {creating:.4f} s to create, "
            f"{walking:.4f} s to walk, {freeing:.4f} s to free"
        )
