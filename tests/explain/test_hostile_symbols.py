"""Programs whose symbols and debug information are made to exhaust memory are explained like any other."""

from __future__ import annotations

import json
import platform
import shutil
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from tests.explain.one_process import Reported, explained

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="explain reads /proc"),
    pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler to make the programs with"),
    pytest.mark.skipif(struct.calcsize("P") != 8, reason="the programs are made for 64 bits"),
    pytest.mark.slow,
]

ADDRESSES: Final = 1 << 30
EXIT_CODE: Final = 7
#: CPU time of a program. Recording may cost a fiftieth of it, and its begin is taken to cost up to two
#: milliseconds: then it begins after a tenth of a second, and on a busy machine later still.
SPINS_NS: Final = 300_000_000
SPINS: Final = """
#include <time.h>
#define SPINS(function, name) \\
    unsigned long function(unsigned long) __asm__(name); \\
    __attribute__((noinline)) unsigned long function(unsigned long sum) {{ \\
        for (unsigned i = 0; i < 1000000; i++) sum += sum * i + 1; \\
        return sum; \\
    }}
SPINS(first, "{names[0]}")
SPINS(second, "{names[1]}")
SPINS(third, "{names[2]}")
int main(void) {{
    struct timespec now;
    unsigned long sum = 0;
    do {{
        sum = third(second(first(sum)));
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    }} while (now.tv_sec == 0 && now.tv_nsec < {spins_ns});
    return sum == 3 ? 1 : {code};
}}
"""


class Elf:
    """A compiled program, of which section headers are changed; the kernel does not read them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.bytes = bytearray(path.read_bytes())
        self.at, each, self.many, names = struct.unpack_from("<Q10xHHH", self.bytes, 40)
        assert each == 64
        self.names = self.header(names)[4]

    def header(self, number: int) -> tuple[int, ...]:
        """Name, kind, flags, address, offset, size, and what is not changed."""
        return struct.unpack_from("<IIQQQQIIQQ", self.bytes, self.at + 64 * number)

    def change(self, name: str, *, flags: int = 0, offset: int | None = None, size: int) -> None:
        """Gives the section other flags, another offset and another size."""
        for number in range(self.many):
            fields = list(self.header(number))
            start = self.names + fields[0]
            if self.bytes[start : self.bytes.index(b"\0", start)] == name.encode():
                fields[2] |= flags
                fields[4] = fields[4] if offset is None else offset
                fields[5] = size
                struct.pack_into("<IIQQQQIIQQ", self.bytes, self.at + 64 * number, *fields)
                return
        pytest.fail(f"the compiler wrote no {name}")

    def write(self) -> None:
        """Writes the program back."""
        self.path.write_bytes(self.bytes)


def bomb(levels: int) -> str:
    """A C++ name that stands for twice the text with each level."""
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    before = [f"S{digits[level]}_" for level in range(levels)]
    return "_Z1f1aIiiE" + "".join(f"S_I{name}{name}E" for name in before)


#: Symbols, and how they are shown: as in the source; as the linker has it where it stands for megabytes.
SHOWN: Final = {
    bomb(20): bomb(20),
    bomb(1): "f(a<int, int>, a<a<int, int>, a<int, int> >)",
    "spin": "spin",
}


def compiled(folder: Path) -> Path:
    """A program that spends its time in functions with these symbols, by turns."""
    folder.mkdir()
    source, program = folder / "spins.c", folder / "spins"
    text = SPINS.format(names=tuple(SHOWN), spins_ns=SPINS_NS, code=EXIT_CODE)
    source.write_text(text, encoding="ascii")
    subprocess.run(["cc", "-O1", "-g", "-o", str(program), str(source)], check=True, timeout=60)
    return program


def of_gigabytes(elf: Elf) -> None:
    """A symbol table of three gigabytes in a sparse file of four."""
    elf.change(".symtab", offset=1 << 29, size=3 << 30)
    elf.write()
    with elf.path.open("r+b") as file:
        file.truncate(4 << 30)


def beyond_the_file(elf: Elf) -> None:
    """Sections longer than any file."""
    for name in (".symtab", ".strtab", ".dynsym", ".debug_line", ".debug_info", ".debug_str"):
        elf.change(name, size=1 << 63)
    elf.write()


def inflating(elf: Elf) -> None:
    """Half a gigabyte of zeros as line tables and as debug information, a thousandth of that in the file."""
    size, piece = 500 << 20, bytes(1 << 20)
    packer = zlib.compressobj()
    first, other = (packer.compress(piece) + packer.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    # Every other piece is packed alike. The end is an empty block and the checksum of so many zeros.
    end = b"\3\0" + struct.pack(">I", size % 65_521 << 16 | 1)
    packed = first + other * (size // len(piece) - 1) + end
    header = struct.pack("<IIQQ", 1, 0, size, 1)
    offset = len(elf.bytes)
    elf.bytes += header + packed
    for name in (".debug_line", ".debug_info"):
        elf.change(name, flags=0x800, offset=offset, size=len(header) + len(packed))
    elf.write()


#: How a program is harmed, and what explain says of its symbols.
HARMS: Final[dict[str, tuple[Callable[[Elf], None], str]]] = {
    "a table of gigabytes": (of_gigabytes, "Some names are missing"),
    "sections beyond the file": (beyond_the_file, ""),
    "sections that inflate": (inflating, "Some tables take too much memory or time to read"),
}


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> Reported:
    """What explain tells of each program in a gigabyte of addresses."""
    whole = tmp_path_factory.mktemp("symbols")
    programs = {"whole": compiled(whole / "whole")}
    for number, (name, (harm, _)) in enumerate(HARMS.items()):
        programs[name] = whole / str(number) / "spins"
        programs[name].parent.mkdir()
        shutil.copy(programs["whole"], programs[name])
        harm(Elf(programs[name]))
    found = explained(
        whole, 1, {name: [str(path)] for name, path in programs.items()}, memory_bytes=ADDRESSES
    )
    if found["whole"]["ledger"]["level"] == 3:
        pytest.skip("nothing can be sampled here, so no symbols are read")
    return found


def functions(reported: Reported, name: str) -> dict[str, float]:
    """The shares of the functions of the program itself."""
    assert reported[name]["exit_code"] == EXIT_CODE, reported[name]["said"]
    ledger: dict[str, Any] = reported[name]["ledger"]
    assert len(json.dumps(ledger)) < 4 << 20
    assert ledger["program"]["exit_code"] == EXIT_CODE
    assert sum(row["share"] for row in ledger["categories"]) == pytest.approx(1.0, abs=1e-9)
    # Of a program of which nothing was recorded there would be none.
    assert ledger["observer"]["samples"], ledger["notes"]
    return {row["name"]: row["share"] for row in ledger["symbols"] if row["object"] == "spins"}


@pytest.mark.parametrize(
    "symbol",
    SHOWN,
    ids=["as the linker has it where it stands for megabytes", "as in the source", "as it is"],
)
def test_a_name_is_shown(reported: Reported, symbol: str) -> None:
    assert functions(reported, "whole")[SHOWN[symbol]] > 0


@pytest.mark.skipif(platform.machine() not in {"x86_64", "aarch64"}, reason="the programs are little-endian")
@pytest.mark.parametrize("name", HARMS)
def test_a_program_with_sections_that_exhaust_memory_is_explained(reported: Reported, name: str) -> None:
    assert sum(functions(reported, name).values()) > 0
    ledger = reported[name]["ledger"]
    assert HARMS[name][1] in ledger["about_symbols"] + ledger["about_lines"]
