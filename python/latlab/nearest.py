"""What somebody probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that is most like `word`, or None when nothing is alike.

    A dotted id is also compared without its first parts: `poke` is like `memory.poke`.
    """
    words = list(known)
    plain = word.strip("*?[]").lower()
    if not plain:
        return None
    for candidate in words:
        if plain in candidate:
            return candidate
    tails = {candidate.rpartition(".")[2]: candidate for candidate in words} | {name: name for name in words}
    found = difflib.get_close_matches(plain, tails, n=1, cutoff=0.6)
    return tails[found[0]] if found else None
