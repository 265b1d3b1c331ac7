"""Reads a run file that may be anybody's: cut short, damaged, foreign, enormous or malicious.

What comes out is a run or one `RunFileError` with file, line and what to do; nothing is executed, nothing
hangs, and memory is bounded. A file without a footer is a run that was cut short, and is kept as one.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

import msgspec

from latlab.errors import RunFileError, WorkerError
from latlab.run import model
from latlab.run.core import core
from latlab.run.fold import without_shape
from latlab.text import clean

if TYPE_CHECKING:
    import zstandard

    from latlab.run.run import Run

SUFFIX: Final = ".latlab.jsonl"
MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds that no run of latlab comes near, and that keep a hostile one from filling the memory."""

    file_bytes: int = 256 * MIB
    expanded_bytes: int = 256 * MIB
    line_bytes: int = 32 * MIB
    records: int = 200_000
    # A number takes 2 bytes in the file and 32 in memory: commas are counted before anything is decoded.
    items_in_line: int = 2_000_000
    items: int = 20_000_000


@dataclass(slots=True)
class _Lines:
    """What has been read so far; `figures` where the file holds no lines that they are of."""

    header: model.Header | None = None
    records: list[model.Record] = field(default_factory=list)
    figures: tuple[model.Record, ...] = ()
    footer: model.Footer | None = None
    notes: list[str] = field(default_factory=list)
    skipped: int = 0


class _Opening(msgspec.Struct):
    """What must be known of a line before the rest of it is believed."""

    line: str = ""
    schema: str = ""


#: How a footer begins its figures, with the version of the fold.
FIGURES: Final = re.compile(rb'"fold":(\d{1,9}),"figures":\[')
_FOOTER: Final = b'{"line":"footer",'
_OPENING = msgspec.json.Decoder(_Opening)
_DAMAGE = (msgspec.MsgspecError, ValueError, RecursionError, OverflowError)
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_OTHER_FORMS = ((b"\x1f\x8b", "gzip"), (b"BZh", "bzip2"), (b"\xfd7zXZ", "xz"), (b"PK\x03\x04", "zip"))
_ZSTD_WINDOW = 128 * MIB


def read(
    path: str | os.PathLike[str],
    limits: Limits | None = None,
    *,
    only: Collection[str] = (),
    in_short: bool = False,
) -> Run:
    """Reads a run file, plain or `.zst`, as lines or as the one object that `measure --json` prints.

    Args:
        path: The file.
        limits: Bounds of what it may hold.
        only: Of these probes alone, for readers in a hurry; of all without it.
        in_short: Its figures as the footer keeps them, without distributions and rounds; `Run.whole` reads
            those. The whole file is read where its footer has no figures, or those of another version.

    Raises:
        RunFileError: it cannot be read as a run; one line says why, where, and what to do.
    """
    from latlab.run.run import Run  # noqa: PLC0415 - Run can be saved and loaded: they know each other

    bounds = limits or Limits()
    shown = clean(os.fspath(path), most=300)
    try:
        data = _expanded(_bytes_of(Path(path), shown, bounds), shown, bounds)
        if in_short:
            data = _in_short(data)
        lines = _parsed(_of_probes(data, only) if only else data, shown, bounds)
    except MemoryError:
        raise RunFileError(f"{shown} does not fit into memory") from None
    if lines.header is None:
        raise RunFileError(f"{shown} has no header line: the run ended before anything was measured")
    if lines.skipped:
        lines.notes.append(f"{lines.skipped} lines of a newer format were skipped: a newer latlab shows them")
    if lines.figures:
        return Run(lines.header, lines.figures, lines.footer, path=Path(path), notes=lines.notes)
    return Run.of_lines(lines.header, lines.records, lines.footer, path=Path(path), notes=lines.notes)


def _of_probes(data: bytes, only: Collection[str]) -> bytes:
    """The lines of some probes, as they begin in files of latlab; all of what begins otherwise."""
    wanted = tuple(b'{"line":"record","probe":"%s"' % probe.encode() for probe in only)
    header, *rest = data.split(b"\n")
    if not (header.startswith(b'{"line":"header"') and any(line.startswith(wanted) for line in rest)):
        return data
    return b"\n".join([header, *(line for line in rest if line.startswith(wanted))]) + b"\n"


def _in_short(data: bytes) -> bytes:
    """The header and the footer, where the latter has figures as this version folds them; else all of it."""
    first, last = data.find(b"\n") + 1, data.rfind(b"\n", 0, -1) + 1
    found = FIGURES.search(data, last) if data.startswith(_FOOTER, last) else None
    try:
        return data[:first] + data[last:] if found and int(found[1]) == core().FOLD_VERSION else data
    except WorkerError:
        return data


def _bytes_of(path: Path, shown: str, limits: Limits) -> bytes:
    try:
        # Asked before opening: opening a FIFO waits for its writer, opening a device may do things.
        _require_regular(os.stat(path).st_mode, shown)  # noqa: PTH116 - a path with a NUL byte is a ValueError
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with open(descriptor, "rb", buffering=0) as file:  # noqa: PTH123 - of a descriptor
            status = os.fstat(descriptor)
            _require_regular(status.st_mode, shown)
            if status.st_size > limits.file_bytes:
                raise _too_large(shown, "", limits.file_bytes)
            data = file.read(limits.file_bytes + 1)
    except FileNotFoundError:
        raise RunFileError(f"{shown} does not exist") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise RunFileError(f"{shown} cannot be read: {clean(reason)}") from None
    if data is None or len(data) > limits.file_bytes:
        raise _too_large(shown, "", limits.file_bytes)
    if not data:
        raise RunFileError(f"{shown} is empty: nothing was measured into it")
    return data


def _require_regular(mode: int, shown: str) -> None:
    if stat.S_ISDIR(mode):
        raise RunFileError(f"{shown} is a folder: name a run file in it (*{SUFFIX})")
    if not stat.S_ISREG(mode):
        raise RunFileError(f"{shown} is not a regular file: name a run file (*{SUFFIX})")


def _too_large(shown: str, what: str, limit: int) -> RunFileError:
    return RunFileError(f"{shown} is larger than {limit // MIB} MiB{what}: a run file cannot be that large")


def _expanded(data: bytes, shown: str, limits: Limits) -> bytes:
    if not data.startswith(_ZSTD_MAGIC):
        for magic, name in _OTHER_FORMS:
            if data.startswith(magic):
                raise RunFileError(f"{shown} is compressed with {name}: unpack it first")
        return data
    import zstandard  # noqa: PLC0415 - only for packed files

    parts: list[bytes] = []
    total = 0
    try:
        with decompressor().stream_reader(data, read_across_frames=True) as stream:
            # In steps: the size that a frame announces is the file's word, not a fact.
            while part := stream.read(MIB):
                parts.append(part)
                total += len(part)
                if total > limits.expanded_bytes:
                    raise _too_large(shown, " when unpacked", limits.expanded_bytes)
    except zstandard.ZstdError as error:
        if not parts:
            raise RunFileError(f"{shown} is damaged: {clean(error)}") from None
    if not parts:
        raise RunFileError(f"{shown} is empty: nothing was measured into it")
    return b"".join(parts)


def decompressor() -> zstandard.ZstdDecompressor:
    """One that takes no more memory than its bounds allow."""
    import zstandard  # noqa: PLC0415 - only for packed files

    return zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)


def _parsed(data: bytes, shown: str, limits: Limits) -> _Lines:
    end = data.find(b"\n")
    first = data if end < 0 else data[:end]
    opening = _opening_of(first[: limits.line_bytes])
    if opening is None:
        # Perhaps one object, written over several lines.
        opening = (
            _opening_of(data) if data.lstrip()[:1] == b"{" and data.count(b",") <= limits.items else None
        )
        if opening is None:
            _refuse_unreadable_start(data, end, shown)
        first = data
    if not opening.schema.startswith(f"{model.SCHEMA_NAME}/"):
        raise RunFileError(f"{shown}:1: not a run of latlab: no schema {model.SCHEMA_NAME!r} in it")
    newer = _newer_minor(opening.schema, shown)
    if not opening.line:
        return _whole(data, shown, limits)
    return _line_by_line(data, shown, limits, newer=newer)


def _opening_of(text: bytes) -> _Opening | None:
    try:
        return _OPENING.decode(text)
    except _DAMAGE:
        return None


def _refuse_unreadable_start(data: bytes, end: int, shown: str) -> NoReturn:
    if end < 0 and data.startswith(b'{"line":"header"'):
        raise RunFileError(f"{shown} ends within its first line: nothing was measured into it")
    raise RunFileError(f"{shown}:1: not a run of latlab: the first line is not latlab's JSON")


def _newer_minor(schema: str, shown: str) -> bool:
    """Whether the file is of a newer minor version; refuses what is not of this major version."""
    version = schema.partition("/")[2]
    major, _, minor = version.partition(".")
    wrong = RunFileError(f"{shown}:1: {clean(schema, most=60)!r} is not a run version")
    if not (major.isascii() and major.isdigit() and len(major) < 6 and len(minor) < 6):  # noqa: PLR2004
        raise wrong
    if minor and not (minor.isascii() and minor.isdigit()):
        raise wrong
    if int(major) > model.SCHEMA_MAJOR:
        raise RunFileError(
            f"{shown}:1: written by a newer latlab (format {clean(version)}, this one reads"
            f" {model.SCHEMA_MAJOR}.x): update latlab to read it"
        )
    if int(major) < 1:
        raise wrong
    return int(major) == model.SCHEMA_MAJOR and int(minor or 0) > int(model.SCHEMA_VERSION.partition(".")[2])


def _whole(data: bytes, shown: str, limits: Limits) -> _Lines:
    _bound_items(data, limits.items, shown, 1)
    try:
        whole = model.WHOLE.decode(data)
    except _DAMAGE as error:
        raise _damaged(shown, 1, error) from None
    if len(whole.records) + len(whole.lines) > limits.records:
        raise _too_many(shown, limits)
    header = model.Header(**{name: getattr(whole, name) for name in model.Header.__struct_fields__})
    footer = whole.footer
    if footer is not None and footer.fold:
        footer = msgspec.structs.replace(footer, figures=tuple(map(without_shape, whole.records)))
    if whole.lines or model.is_one_round(header):
        return _Lines(header, list(whole.lines or whole.records), footer=footer)
    return _Lines(header, figures=whole.records, footer=footer)


def _line_by_line(data: bytes, shown: str, limits: Limits, *, newer: bool) -> _Lines:
    out = _Lines()
    view = memoryview(data)
    start, number, items = 0, 0, 0
    while start < len(data):
        number += 1
        end = data.find(b"\n", start)
        complete = end >= 0
        stop = end if complete else len(data)
        if stop - start > limits.line_bytes:
            raise RunFileError(
                f"{shown}:{number}: line longer than {limits.line_bytes // MIB} MiB: not a run file"
            )
        items += _bound_items(data, limits.items_in_line, shown, number, start, stop)
        if items > limits.items or len(out.records) > limits.records:
            raise _too_many(shown, limits)
        try:
            line = model.LINE.decode(view[start:stop])
        except _DAMAGE as error:
            if out.header is not None and out.footer is None and _is_torn(data, start, stop, error):
                out.notes.append("the last line was cut short and is left out")
                break
            if not (newer and isinstance(error, msgspec.ValidationError) and out.header is not None):
                raise _damaged(shown, number, error) from None
            out.skipped += 1
        else:
            _take(out, line, shown, number)
        start = stop + 1
    if len(out.records) > limits.records:
        raise _too_many(shown, limits)
    return out


def _is_torn(data: bytes, start: int, stop: int, error: BaseException) -> bool:
    """Whether a line that is no JSON is the end of an append that a crash or a full disk cut short."""
    if isinstance(error, msgspec.ValidationError):
        return False
    # After a power cut, a file system may have given room that was never filled.
    return stop == len(data) or not data[start:].strip(b"\0")


def _take(out: _Lines, line: model.Line, shown: str, number: int) -> None:
    if out.footer is not None:
        raise RunFileError(
            f"{shown}:{number}: something follows the footer: two runs in one file? split them"
        )
    if isinstance(line, model.Header):
        if out.header is not None:
            raise RunFileError(f"{shown}:{number}: a second header: two runs in one file? split them")
        out.header = line
    elif out.header is None:
        raise RunFileError(
            f"{shown}:{number}: the first line is not a header: the start of the file is missing"
        )
    elif isinstance(line, model.Record):
        out.records.append(line)
    else:
        out.footer = line


def _bound_items(
    data: bytes, limit: int, shown: str, number: int, start: int = 0, stop: int | None = None
) -> int:
    items = data.count(b",", start, stop)
    if items > limit:
        raise RunFileError(f"{shown}:{number}: more than {limit:,} values: not a run file")
    return items


def _too_many(shown: str, limits: Limits) -> RunFileError:
    return RunFileError(
        f"{shown} holds more than {limits.records:,} records or {limits.items:,} values: not a run file"
    )


def _damaged(shown: str, number: int, error: BaseException) -> RunFileError:
    reason = "nested too deeply" if isinstance(error, RecursionError) else clean(error, most=200)
    return RunFileError(f"{shown}:{number}: damaged line: {reason}; remove the line to see the rest")
