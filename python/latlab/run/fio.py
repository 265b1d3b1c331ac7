"""The fio command that measures the same as a point of a storage probe, for those who doubt a figure.

Every command is made of fixed words and the point's numbers. `FILE` stands for the file's name,
`DIR` for a directory's: no path of a run is ever part of a command.
"""

from __future__ import annotations

from collections.abc import Callable

from latlab.run.model import Point

_START = "fio --name=latlab"
_KIB = 1024
#: Requests under way at most, of which a rate may need as many as come together by chance.
_OPEN_LOOP_DEPTH = 64
_TIMED = "--time_based --runtime=10"
_READ_PATHS = {
    "direct": "--direct=1",
    "buffered-cold": "--direct=0 --invalidate=1",
    "buffered-warm": "--direct=0 --pre_read=1",
}
_WRITE_PATHS = {
    "direct": "--direct=1",
    "buffered-fsync-each": "--direct=0 --fsync=1",
    "buffered-fsync-end": "--direct=0 --end_fsync=1",
    "buffered": "--direct=0",
}
_SYNCS = {
    "fsync": "--direct=0 --fsync=1",
    "fdatasync": "--direct=0 --fdatasync=1",
    "o_dsync": "--direct=0 --sync=dsync",
    "direct-fdatasync": "--direct=1 --fdatasync=1",
}
#: fio lays a file out before it measures, except when it is to grow.
_LAID_OUT = "--overwrite=1 --size=1g --refill_buffers"


def command(probe: str, point: Point) -> str | None:
    """The command; None where fio has nothing like it."""
    make = _COMMANDS.get(probe)
    words = make(point) if make is not None else None
    return None if words is None else f"{_START} {words}"


def size(number: int) -> str:
    """Bytes as fio reads them: `4k`, `1m`; its `k` is 1,024."""
    for power, unit in ((3, "g"), (2, "m"), (1, "k")):
        if number and number % _KIB**power == 0:
            return f"{number // _KIB**power}{unit}"
    return str(number)


def _reads(point: Point) -> str | None:
    path = _READ_PATHS.get(point.path or "")
    if path is None or not point.block_bytes:
        return None
    # Read once from the disk, the file is in the cache: the cold path ends with the file.
    ends = "" if point.path == "buffered-cold" else f" {_TIMED}"
    return (
        f"--filename=FILE --readonly --rw=read --bs={size(point.block_bytes)} {path} --ioengine=psync{ends}"
    )


def _writes(point: Point) -> str | None:
    path = _WRITE_PATHS.get(point.path or "")
    if path is None or not point.block_bytes:
        return None
    ends = "" if point.path == "buffered-fsync-end" else f" {_TIMED}"
    block = size(point.block_bytes)
    return f"--filename=FILE --rw=write --bs={block} {path} --ioengine=psync {_LAID_OUT}{ends}"


def _random(verb: str) -> Callable[[Point], str | None]:
    def words(point: Point) -> str | None:
        depth = point.queue_depth or 1
        if not point.block_bytes:
            return None
        kind = "--readonly --rw=randread" if verb == "read" else f"--rw=randwrite {_LAID_OUT}"
        same = f"--filename=FILE {kind} --bs={size(point.block_bytes)} --direct=1"
        order = f"--norandommap --randrepeat=0 {_TIMED}"
        return f"{same} {_engine(point.engine, depth)} {order}"

    return words


def _engine(engine: str | None, depth: int) -> str:
    if depth == 1 and engine in {None, "psync"}:
        return "--ioengine=psync"
    if engine == "threads":
        return f"--ioengine=psync --thread --numjobs={depth} --group_reporting"
    return f"--ioengine=io_uring --iodepth={depth}"


def _rate(point: Point) -> str | None:
    if not point.rate_per_s or not point.block_bytes:
        return None
    return (
        f"--filename=FILE --readonly --rw=randread --bs={size(point.block_bytes)} --direct=1"
        f" {_engine('io_uring', _OPEN_LOOP_DEPTH)} --rate_iops={point.rate_per_s} --rate_process=poisson"
        f" --norandommap --randrepeat=0 {_TIMED}"
    )


def _poke(point: Point) -> str | None:
    path = _READ_PATHS.get(point.path or "")
    if path is None or not point.file_bytes:
        return None
    # Past the cache there are only whole blocks.
    block = "4k" if point.path == "direct" else "1"
    return (
        f"--filename=FILE --size={size(point.file_bytes)} --rw=randrw --bs={block} {path} --ioengine=psync"
        f" --norandommap --randrepeat=0 {_TIMED}"
    )


def _sync(point: Point) -> str | None:
    how = _SYNCS.get(point.sync or "")
    if how is None:
        return None
    if point.operation == "overwrite":
        return f"--filename=FILE --rw=write --bs=4k {how} --ioengine=psync {_LAID_OUT} {_TIMED}"
    if point.operation == "append":
        grows = "--fallocate=none --create_on_open=1 --size=64m --refill_buffers"
        return f"--filename=FILE --rw=write --bs=4k {how} --ioengine=psync {grows}"
    if point.operation == "create":
        many = "--nrfiles=1000 --filesize=4k --openfiles=1 --create_on_open=1 --fallocate=none"
        return f"--directory=DIR --rw=write --bs=4k {how} --ioengine=psync {many} --refill_buffers"
    return None


def _files(point: Point) -> str | None:
    if not point.files or not point.file_bytes or point.engine == "python":
        return None
    block = size(point.file_bytes)
    many = f"--nrfiles={point.files} --filesize={block} --openfiles=1 --file_service_type=sequential"
    if point.operation == "write":
        flushed = " --fsync_on_close=1" if point.sync == "fsync" else ""
        new = f"--rw=write --create_on_open=1 --fallocate=none --refill_buffers{flushed}"
    elif point.operation in {"read-warm", "read-cold"}:
        new = f"--rw=read {'--pre_read=1' if point.operation == 'read-warm' else '--invalidate=1'}"
    else:
        return None
    return f"--directory=DIR {many} {new} --bs={block} --ioengine=psync"


def _reread(point: Point) -> str | None:
    if point.operation != "reread" or not point.file_bytes:
        return None
    file = size(point.file_bytes)
    return (
        f"--filename=FILE --readonly --rw=read --bs={file} --size={file} --pre_read=1 --ioengine=psync"
        f" {_TIMED}"
    )


def _steady(point: Point) -> str | None:
    if point.operation not in {"read", "write"} or not point.block_bytes:
        return None
    kind = "--readonly --rw=read" if point.operation == "read" else f"--rw=write {_LAID_OUT}"
    return (
        f"--filename=FILE {kind} --bs={size(point.block_bytes)} --direct=1 --ioengine=psync --time_based"
        " --runtime=20 --write_bw_log=steady --log_avg_msec=250"
    )


_COMMANDS: dict[str, Callable[[Point], str | None]] = {
    "storage.read.sequential": _reads,
    "storage.write.sequential": _writes,
    "storage.read.random": _random("read"),
    "storage.write.random": _random("write"),
    "storage.rate": _rate,
    "storage.poke": _poke,
    "storage.sync": _sync,
    "storage.files": _files,
    "storage.reread": _reread,
    "storage.steady": _steady,
}
