"""Which file of a crate imports which, as the text of `use` and of paths says.

What a file hands on by `pub use` is followed to where it comes from. As a script it draws them for Graphviz:
`python tools/rust_imports.py crates/latlab-harness`.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

Module = tuple[str, ...]
"""A file's path in its crate: `("block", "remote")`, and `()` for the crate's root."""

_WORDS = re.compile(r"""//[^\n]*|\br(#*)".*?"\1|"(?:[^"\\]|\\.)*"|'(?:[^'\\\n]|\\[^'\n]+|\\')'""", re.DOTALL)
"""Comments, strings and characters: what looks like a path in them is none."""
_ELSEWHERE = re.compile(r'((?:#\[[^\n]*path = "[^"\n]+"\)?\]\s*)+)(?:pub(?:\([^)]*\))? )?mod (\w+);')
_INNER_TESTS = re.compile(r"\n#\[cfg\((?:all\()?test\b[^\n]*\nmod \w+ \{.*?\n\}\n", re.DOTALL)
_USE = re.compile(r"\b(pub(?:\([^)]*\))? )?use ([^;]+);")
_PATH = re.compile(r"\b\w+(?:::\w+)+")


class Crate:
    """The files of a crate, without its tests."""

    def __init__(self, folder: Path) -> None:
        source = (folder / "src").resolve()
        self.texts: dict[Module, str] = {}
        self.placed: dict[Module, Module] = {}
        for path in sorted(source.rglob("*.rs")):
            parts = path.relative_to(source).with_suffix("").parts
            if "tests" not in parts:
                module = _module(path.relative_to(source))
                text = path.read_text(encoding="utf-8")
                for attributes, name in _ELSEWHERE.findall(text):
                    # Of several systems' files the first, which is Linux's.
                    file = (path.parent / re.findall(r'path = "([^"]+)"', attributes)[0]).resolve()
                    if file.is_relative_to(source):
                        self.placed[*module, name] = _module(file.relative_to(source))
                text = _INNER_TESTS.sub("\n", _WORDS.sub('""', text))
                self.texts[module] = self.texts.get(module, "") + text
        self.handed_on: dict[Module, dict[str, Module]] = defaultdict(dict)
        # What is handed on by a file that has it from another one needs a second look.
        for _ in range(3):
            for module in self.texts:
                for public in (False, True):
                    for segments, name in self._uses(module, public=public):
                        self.handed_on[module][name] = self._file(module, segments)

    def imports(self) -> dict[Module, set[Module]]:
        """The files that each file imports. What it only declares or re-exports does not count."""
        found: dict[Module, set[Module]] = {}
        for module, text in self.texts.items():
            paths = [path for path, _ in self._uses(module, public=False)]
            paths += [path.split("::") for path in _PATH.findall(_USE.sub("", text))]
            found[module] = {self._file(module, path) for path in paths} - {module}
        return found

    def circles(self) -> list[list[Module]]:
        """One circle for each folder that has one, as a list of files that ends with its first.

        A file stands for the folder of its name too: what it and its parts need of each other is no circle,
        nor is what the crate's root and its files do.
        """
        imports = [(one, other) for one, others in self.imports().items() for other in others]
        found = []
        for folder in {module[:length] for module in self.texts for length in range(len(module))}:
            length = len(folder)
            graph: dict[Module, set[Module]] = defaultdict(set)
            for one, other in imports:
                if one[:length] == other[:length] == folder and min(len(one), len(other)) > length:
                    graph[one[: length + 1]] |= {other[: length + 1]} - {one[: length + 1]}
            try:
                TopologicalSorter(graph).prepare()
            except CycleError as error:
                found.append(list(reversed(error.args[1])))
        return found

    def _uses(self, module: Module, *, public: bool) -> Iterator[tuple[list[str], str]]:
        """Each path that a file uses, and the name that it gives it."""
        for is_public, tree in _USE.findall(self.texts[module]):
            if bool(is_public) == public:
                for branch in _branches(re.sub(r"\s+", " ", tree)):
                    path, _, name = branch.partition(" as ")
                    segments = [segment.strip() for segment in path.split("::")]
                    yield segments, name.strip() or segments[-1]

    def _file(self, module: Module, path: list[str]) -> Module:
        """The file that a path of this one leads to: itself, where the path leads out of the crate."""
        at = module
        for place, segment in enumerate(path):
            if segment == "crate":
                at = ()
            elif segment == "super":
                at = at[:-1]
            elif (*at, segment) in self.placed:
                at = self.placed[*at, segment]
            elif (*at, segment) in self.texts:
                at = (*at, segment)
            elif segment in self.handed_on[at]:
                at = self.handed_on[at][segment]
            elif segment != "self":
                return at if place or segment == "*" else module
        return at


def _module(file: Path) -> Module:
    parts = file.with_suffix("").parts
    return parts[:-1] if parts[-1] in {"mod", "lib"} else parts


def _branches(tree: str) -> Iterator[str]:
    """`a::{b, c::{d, e}}` as `a::b`, `a::c::d`, `a::c::e`."""
    stem, brace, inner = tree.strip().partition("{")
    if not brace:
        yield stem
        return
    depth, begin = 0, 0
    inner = inner[: inner.rindex("}")] + ","
    for place, letter in enumerate(inner):
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            if inner[begin:place].strip():
                yield from (stem + branch for branch in _branches(inner[begin:place]))
            begin = place + 1


def main(folder: Path) -> None:
    """Prints the imports of a crate as a graph."""
    print(f'digraph "{folder.name}" {{\n    rankdir=LR; node [shape=box, fontname="sans-serif"];')
    for module, others in Crate(folder).imports().items():
        for other in sorted(others):
            print(f'    "{"::".join(module) or "lib"}" -> "{"::".join(other) or "lib"}";')
    print("}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
