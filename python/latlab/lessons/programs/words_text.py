"""Makes a text with as many words, and different ones, as a very long book; the same every time."""

from __future__ import annotations

import os
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

#: One copy: the article's 413 MB are 100 of them.
BYTES = 4_130_000
#: Different words without their punctuation; with it, and with the numbers of verses, there are some 34,000.
VOCABULARY = 9_900
_ENDS = {"": 8000, ",": 1050, ":": 160, ".": 330, ";": 130, "?": 45, "!": 4}
_CONSONANTS, _VOWELS = "bcdfghklmnprstvwyz", "aeiou"


def vocabulary(chance: random.Random, size: int) -> list[str]:
    """Words that can be pronounced, the short ones first, as frequent words are."""
    found: dict[str, None] = {}
    while len(found) < size:
        syllables = 1 + (len(found) > chance.randrange(150)) + (len(found) > chance.randrange(500, 20_000))
        word = "".join(chance.choice(_CONSONANTS) + chance.choice(_VOWELS) for _ in range(syllables))
        found[word + chance.choice(("", "", "n", "t", "s"))] = None
    return list(found)


def tokens(size: int, seed: int) -> Iterator[str]:
    """Words as they stand in a text of so many different ones, without end."""
    chance = random.Random(seed)
    known = vocabulary(chance, size)
    # How often a word comes falls with its rank, as in real texts (Zipf's law).
    weights = list(accumulate(1 / (rank + 2.7) for rank in range(len(known))))
    endings, how_often = list(_ENDS), list(accumulate(_ENDS.values()))
    chapter = verse = 0
    while True:
        chapter, verse = (
            (chapter % 50 + 1, 1) if verse >= chance.randrange(10, 60) else (max(chapter, 1), verse + 1)
        )
        yield f"{chapter}:{verse}"
        count = chance.randrange(12, 40)
        words = chance.choices(known, cum_weights=weights, k=count)
        words[0] = words[0].capitalize()
        for word, end in zip(words, chance.choices(endings, cum_weights=how_often, k=count), strict=True):
            yield word + end


def one_copy(size: int = BYTES, seed: int = 1611) -> tuple[bytes, Counter[str]]:
    """A text of exactly `size` bytes, and how often each word was put into it."""
    lines: list[str] = []
    line, room, tally = "", size - 1, Counter[str]()
    for token in tokens(VOCABULARY * size // BYTES, seed):
        if len(token) + 1 > room:
            break
        room -= len(token) + 1
        tally[token.lower()] += 1
        if line and len(line) + len(token) > 70:
            lines.append(line)
            line = token
        else:
            line = f"{line} {token}" if line else token
    text = "\n".join([*lines, line])
    return (text + "\n" * (size - len(text))).encode("ascii"), tally


def write_copies(path: Path, copy: bytes, copies: int) -> None:
    """Writes it `copies` times into a new file, until it is on the disk."""
    with open(path, "wb") as file:
        file.writelines(copy for _ in range(copies))
        file.flush()
        os.fsync(file.fileno())


def of_many_words(words: int, distinct: int, seed: int = 1) -> tuple[bytes, Counter[str]]:
    """A text of so many words out of so many different ones, each as likely as any other."""
    chance = random.Random(seed)
    known = [f"w{number:x}" for number in range(distinct)]
    drawn = chance.choices(known, k=words)
    lines = (" ".join(drawn[at : at + 12]) for at in range(0, words, 12))
    return ("\n".join(lines) + "\n").encode("ascii"), Counter(drawn)


if __name__ == "__main__":
    made, counted = one_copy(100_000 if "--small" in sys.argv else BYTES)
    assert Counter(made.decode().lower().split()) == counted
    with tempfile.TemporaryDirectory(dir=".") as folder:
        write_copies(Path(folder, "text"), made, 2)
    print(f"{len(made)} bytes, {counted.total()} words, {len(counted)} of them different, in each copy")
