"""Programs whose symbols and debug information are made to exhaust memory are explained like any other."""

from __future__ import annotations

import json
import platform
import resource
import shutil
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="explain reads /proc"),
    pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler to make the programs with"),
    pytest.mark.skipif(struct.calcsize("P") != 8, reason="the programs are made for 64 bits"),
]

ADDRESSES: Final = 1 << 30
EXIT_CODE: Final = 7
SPINS: Final = """
#include <time.h>
int hostile(void) __asm__("{name}");
__attribute__((noinline)) int hostile(void) {{
    struct timespec now;
    unsigned long sum = 0;
    do {{
        for (unsigned i = 0; i < 1000000; i++) sum += sum * i + 1;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    }} while (now.tv_sec == 0 && now.tv_nsec < 400000000);
    return sum == 3 ? 1 : {code};
}}
int main(void) {{ return hostile(); }}
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


def compiled(folder: Path, name: str, *options: str) -> Path:
    """A program that spends its time in a function with that symbol."""
    source, program = folder / "spins.c", folder / "spins"
    source.write_text(SPINS.format(name=name, code=EXIT_CODE), encoding="ascii")
    subprocess.run(["cc", "-O1", *options, "-o", str(program), str(source)], check=True, timeout=60)
    return program


def explained(program: Path) -> dict[str, Any]:
    """What explain tells of it in a gigabyte of addresses."""
    told = program.with_suffix(".json")
    done = subprocess.run(
        [sys.executable, "-m", "latlab", "explain", "--no-limits", "--json", str(told), "--", str(program)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES)),
    )
    assert done.returncode == EXIT_CODE, done.stderr
    assert told.stat().st_size < 4 << 20
    ledger: dict[str, Any] = json.loads(told.read_text(encoding="utf-8"))
    assert ledger["program"]["exit_code"] == EXIT_CODE
    assert sum(row["share"] for row in ledger["categories"]) == pytest.approx(1.0, abs=1e-9)
    if ledger["observer"]["samples"] == 0:
        pytest.skip("nothing can be sampled here, so no symbols are read")
    return ledger


def hottest(ledger: dict[str, Any], program: Path) -> str:
    """The function of the program itself that took most."""
    of_program = [row for row in ledger["symbols"] if row["object"] == program.name]
    name: str = max(of_program, key=lambda row: row["share"])["name"]
    return name


def test_a_name_that_stands_for_megabytes_is_shown_as_the_linker_has_it(tmp_path: Path) -> None:
    program = compiled(tmp_path, bomb(20))
    assert hottest(explained(program), program) == bomb(20)


def test_a_name_of_the_same_kind_that_is_short_is_shown_as_in_the_source(tmp_path: Path) -> None:
    program = compiled(tmp_path, bomb(1))
    assert hottest(explained(program), program) == "f(a<int, int>, a<a<int, int>, a<int, int> >)"


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
    packed = b"".join(packer.compress(piece) for _ in range(size >> 20)) + packer.flush()
    header = struct.pack("<IIQQ", 1, 0, size, 1)
    offset = len(elf.bytes)
    elf.bytes += header + packed
    for name in (".debug_line", ".debug_info"):
        elf.change(name, flags=0x800, offset=offset, size=len(header) + len(packed))
    elf.write()


@pytest.mark.skipif(platform.machine() not in {"x86_64", "aarch64"}, reason="the programs are little-endian")
@pytest.mark.parametrize(
    ("harm", "reports"),
    [
        (of_gigabytes, "Not all names were read"),
        (beyond_the_file, ""),
        (inflating, "Some tables take too much memory or time to read"),
    ],
)
def test_a_program_with_sections_that_exhaust_memory_is_explained(
    tmp_path: Path, harm: Callable[[Elf], None], reports: str
) -> None:
    program = compiled(tmp_path, "spin", "-g")
    assert hottest(explained(program), program) == "spin"
    harm(Elf(program))
    ledger = explained(program)
    assert reports in ledger["about_symbols"] + ledger["about_lines"]
    busy = sum(row["share"] for row in ledger["symbols"] if row["object"] == program.name)
    assert busy > 0
