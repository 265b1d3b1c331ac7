"""Attribute access: each object's attribute is the next object of a ring."""


class Node:
    """One of the ring, with a number."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.following = self


RING = [Node(number) for number in range(61)]
for each in RING:
    each.following = RING[(each.number + 1) % 61]


def run(n: int) -> int:
    """Follows `n` attributes, a multiple of 16; the number of the object where that ends."""
    node = RING[0]
    for _ in range(n // 16):
        node = node.following
        node = node.following
        node = node.following
        node = node.following
        node = node.following
        node = node.following
        node = node.following
        node = node.following
        node = node.following
        node = node.following
        node = node.following
        node = node.following
        node = node.following
        node = node.following
        node = node.following
        node = node.following
    return node.number
