"""The truth about a run, by the kernel's own events: the ledger's definition by other means.

`perf record` keeps each switch with its kernel stack, each wake-up, and where each CPU is a thousand times a
second. From these the wall time of a program is swept: while threads of it run, an instant is what they do;
else, while one is ready, it waits for a CPU; else it is what its threads wait for: the main thread's own wait
if that is for storage, the network or a time, otherwise the first of all in a fixed order. Nothing here comes
from latlab: neither its events, nor its tables of functions, nor its code.

What user code does is known by names of functions. A sample whose function has no name may be any of what
names tell apart, so such a share has a low and a high end.
"""

from __future__ import annotations

import os
import re
import select
import subprocess
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

_PERIOD_NS: Final = 1_003_009
"""A prime: it keeps step with no timer."""
_SAMPLE: Final = f"cpu-clock/period={_PERIOD_NS}/"
_NO_STACK: Final = ("sched_wakeup", "sched_wakeup_new", "sched_process_fork", "sched_process_exec")
_BUFFER: Final = "16M"
_PATIENCE_S: Final = 30.0

UNNAMED: Final = "unnamed"
"""User code of a C library's function without a name."""

_WAITS: Final[tuple[tuple[str, str], ...]] = (
    ("polls", r"do_sys_poll|do_poll|do_select|ep_poll|do_epoll_wait|poll_schedule_timeout"),
    ("start-and-exit", r"do_exit|do_group_exit|exit_mm|begin_new_exec|load_elf_binary|bprm_execve"),
    (
        "storage-wait",
        r"io_schedule|folio_wait|__folio_lock|wait_on_buffer|bit_wait_io|jbd2_|blk_|submit_bio|rq_qos_wait"
        r"|balance_dirty_pages|do_fsync|fsync",
    ),
    ("network", r"tcp_|inet_|sk_wait|unix_|sock_|skb_|udp_"),
    ("pipe", r"anon_pipe_|pipe_|fifo_open"),
    ("sleep", r"hrtimer_nanosleep|do_nanosleep|sigsuspend|__x64_sys_pause|do_sigtimedwait|n_tty_"),
    ("waiting-for-children", r"do_wait|kernel_wait4|wait_for_vfork|kernel_clone"),
    ("locks", r"futex|rwsem_|__vma_start_write|down_read|down_write|mutex_lock|flock|posix_lock|eventfd"),
    ("interrupts-for-others", r"synchronize_rcu|wait_rcu_gp|stop_one_cpu"),
)
"""Why a thread waits: the first whose expression a function of its kernel stack begins with."""
_KERNEL: Final[tuple[tuple[str, str], ...]] = (
    ("interrupts-for-others", r"(asm_)?sysvec_|(asm_)?common_interrupt|(__)?irq_exit_rcu"),
    (
        "start-and-exit",
        r"do_exit|do_group_exit|exit_mm|(__x64_sys|do)_execve|bprm_execve|load_elf_binary|begin_new_exec"
        r"|ret_from_fork|kernel_clone|copy_process",
    ),
    ("page-faults", r"(asm_)?exc_page_fault"),
    ("pipe", r"anon_pipe_|pipe_read|pipe_write"),
    (
        "polls",
        r"do_sys_poll|do_poll|do_select|core_sys_select|ep_poll|do_epoll|__x64_sys_(epoll|e?poll|ppoll|p?select)",
    ),
    (
        "network",
        r"sock_|__sock|tcp_|inet_|unix_|__sys_(recv|send|accept|connect|socket|shutdown|[gs]etsockopt)",
    ),
    ("allocator", r"__x64_sys_(brk|mmap|munmap|mremap|madvise|mprotect)|__do_sys_brk|__vm_munmap|do_mmap"),
    ("locks", r"do_futex|futex_|__x64_sys_(futex|sched_yield|flock|fcntl)"),
    ("sleep", r"__x64_sys_(clock_)?nanosleep"),
    ("waiting-for-children", r"__x64_sys_wait|kernel_wait"),
    (
        "file-io-cpu",
        r"vfs_|ksys_(read|write|pread|pwrite|lseek|fadvise)|filemap_|do_sys_open|do_fsync|path_|filename_"
        r"|__x64_sys_(open|close|read|write|pread|pwrite|lseek|stat|fstat|lstat|newfstat|statx|access|faccess|unlink"
        r"|rename|mkdir|rmdir|chmod|fchmod|utime|getdents|fsync|fdatasync|sync|fallocate|ftruncate|sendfile|splice"
        r"|copy_file_range|fadvise|link|symlink|readlink|getcwd|ioctl|readv|writev)|__do_sys_newfstat|__fput|task_work_run",
    ),
)
"""What the kernel does for a thread, in the same way; other system calls have no category."""
_READING: Final = re.compile(
    r"page_cache_ra|read_pages|submit_bio|blk_|ext4_mpage_readpages|filemap_read_folio"
)
_PREEMPTED: Final = re.compile(r"exit_to_user_mode_loop|irqentry_exit|preempt_schedule|__cond_resched")
_SWITCHING: Final = re.compile(r"__schedule|schedule|finish_task_switch")

_COLLECTORS: Final = {
    "java": re.compile(r"GC Thread|G1 "),
    "go": re.compile(
        r"runtime\.(gcBgMarkWorker|gcAssist|gcDrain|gcStart|gcMark|bgsweep|bgscavenge|scanobject|scanSpan|scanblock"
        r"|greyobject|sweepone|markroot|wbBufFlush|\(\*sweepLocked\)|\(\*gcWork\)|scanstack|tryDeferToSpanScan|\(\*spanQueue\))"
    ),
    "node": re.compile(
        r"v8::internal::(MarkCompact|Scaveng|Sweeper|ConcurrentMarking|MainMarking|YoungGeneration|Evacuat|Heap::CollectGarbage)"
    ),
}
_USER: Final[tuple[tuple[str, str], ...]] = (
    (
        "allocator",
        r"(__)?(libc_)?(malloc|calloc|realloc|free|cfree|memalign|posix_memalign)(@|$|_usable_size|_consolidate)"
        r"|_int_(malloc|free|realloc|memalign)|_mid_memalign|sysmalloc|unlink_chunk|tcache_|systrim|sysmalloc|arena_get"
        r"|operator (new|delete)|je_|runtime\.(mallocgc|\(\*m(cache|central|heap|span)\)|nextFree|newobject)"
        r"|runtime\.(makeslice|growslice)"
        r"|_?PyObject_(Malloc|Free|Realloc|Calloc)|_PyObject_GC_|PyObject_GC_Del|.*_dealloc$|_Py_Dealloc",
    ),
    (
        "memory-copy",
        r"(__)?(GI_)?_*(memcpy|memmove|mempcpy|memset|bzero)|runtime\.(memmove|memclr)|.*_arraycopy",
    ),
    (
        "locks",
        r"(__)?(GI_)?_*pthread_(mutex|spin)|__lll_lock|runtime\.(lock2|unlock2|procyield)|sync\.\(\*Mutex\)",
    ),
)
"""What user code does, by the function that runs."""
_ORDER: Final = (
    "storage-wait", "network", "page-faults", "sleep", "pipe", "start-and-exit", "locks", "other",
    "waiting-for-children",
)  # fmt: skip
"""Which of several threads' waits an instant belongs to: waits for the outside before their consequences."""
_OUTSIDE: Final = ("storage-wait", "network", "sleep")

_HEAD: Final = re.compile(
    r"^\s*(.*?)\s+(-?\d+)/(-?\d+)\s+\[\d+\]\s+(\d+)\.(\d+):\s+(?:\d+\s+)?([\w:/=-]+):\s*(.*)$"
)
_ON_OR_OFF: Final = re.compile(
    r"^\s*(.*?)\s+-?\d+/(-?\d+)\s+\[\d+\]\s+(\d+)\.(\d+):\s+PERF_RECORD_SWITCH\w* (IN|OUT preempt|OUT)\b"
)
_RECORDED: Final = {"IN": "running", "OUT preempt": "ready", "OUT": "other"}
"""What a thread does after a record of its switch, if there is no trace event of it."""
_FRAME: Final = re.compile(r"^\t\s*[0-9a-f]+ (.*?)(?:\+0x[0-9a-f]+)? \((.*)\)(?: \(.*\))?$")
_SWITCH: Final = re.compile(r"prev_pid=(\d+) prev_prio=-?\d+ prev_state=(\S+) ==> .*next_pid=(\d+) next_prio")
_FORK: Final = re.compile(r"pid=(\d+) child_comm=.* child_pid=(\d+)")
_WOKEN: Final = re.compile(r" pid=(\d+) prio=")

_KERNEL_FILE: Final = "[kernel.kallsyms]"

Stack = list[tuple[str, str]]
"""Function and file, the innermost first."""


@dataclass
class Event:
    """One of perf's records."""

    at: int
    name: str
    comm: str
    thread: int
    text: str
    stack: Stack = field(default_factory=list)


@dataclass(frozen=True)
class Truth:
    """What a run was spent on."""

    wall_s: float
    shares: dict[str, float]
    """By category, of wall time; what has no name is not in the four rows of user code."""
    kernel: dict[str, float]
    """What of the shares was the kernel's work on a CPU."""
    unnamed: float
    """User code of which the name is not known."""
    thread_ready_s: float
    """Ready threads, summed."""
    thread_running_s: float
    others: dict[str, int]
    """The stacks for which there is no category, the largest first."""


class Sweep:
    """States of the program's threads, in order of time."""

    def __init__(self, root: set[int], main: int, polls: str) -> None:
        self.main = main
        self.polls = polls
        self.now = 0
        self.states: dict[int, str] = dict.fromkeys(root, "unknown")
        self.spent: dict[str, float] = defaultdict(float)
        self.weights: dict[str, float] = defaultdict(float)
        self.of_kernel: dict[str, float] = defaultdict(float)
        self.ready = self.running = 0.0
        self.others: Counter[str] = Counter()

    def go_on(self, to: int) -> None:
        """Gives the time until then away."""
        past, self.now = to - self.now, to
        if not past:
            return
        states = self.states.values()
        running = sum(state == "running" for state in states)
        ready = sum(state == "ready" for state in states)
        self.running += past * running
        self.ready += past * ready
        if running:
            self.spent["running"] += past
        elif ready:
            self.spent["run-queue-wait"] += past
        else:
            self.spent[self._wait()] += past

    def _wait(self) -> str:
        main = self.states.get(self.main, "")
        if main in _OUTSIDE:
            return main
        waits = {self.polls if state == "polls" else state for state in self.states.values()} - {"unknown"}
        return min(
            waits, key=lambda wait: _ORDER.index(wait) if wait in _ORDER else len(_ORDER), default="other"
        )

    def switch(self, event: Event) -> None:
        """One thread leaves a CPU, another gets it."""
        found = _SWITCH.search(event.text)
        if not found:
            return
        before, state, after = int(found[1]), found[2], int(found[3])
        if before in self.states:
            if state.startswith("R"):
                self.states[before] = "ready"
            elif state[0] in "XZ":
                del self.states[before]
            else:
                self.states[before] = self._reason(event.stack)
        if after in self.states:
            self.states[after] = "running"

    def take(self, event: Event, collector: str) -> None:
        """What changes by an event."""
        if event.name == "sched_switch":
            self.switch(event)
        elif event.name in _RECORDED:
            # Trace events may be lost, those of the idle tasks above all; these records are not.
            if event.name == "IN" or self.states.get(event.thread) == "running":
                self.set(event.thread, _RECORDED[event.name])
        elif event.name in ("sched_wakeup", "sched_wakeup_new"):
            woken = _WOKEN.search(" " + event.text)
            if woken and self.states.get(int(woken[1]), "running") != "running":
                self.states[int(woken[1])] = "ready"
        elif event.name == "sched_process_fork":
            forked = _FORK.search(event.text)
            if forked and int(forked[1]) in self.states:
                self.states[int(forked[2])] = "unknown"
        elif event.name != "sched_process_exec" and event.thread in self.states:
            self.sample(event, doing(event, collector))

    def forget(self, now: int) -> None:
        """Begins anew, with the states of threads as they are."""
        self.now = now
        self.spent.clear()
        self.weights.clear()
        self.of_kernel.clear()
        self.ready = self.running = 0.0

    def set(self, thread: int, state: str) -> None:
        """The new state of a thread, if it is one of the program's."""
        if thread in self.states:
            self.states[thread] = state

    def _reason(self, stack: Stack) -> str:
        names = in_kernel(stack)
        found = first(_WAITS, names)
        if found is None:
            self.others["waits in " + " < ".join(names[:8])] += 1
        return found or "other"

    def sample(self, event: Event, category: str) -> None:
        """A thread was seen on a CPU: it stands for its part of those that run."""
        if self.states.get(event.thread) == "unknown":
            self.states[event.thread] = "running"
        if self.states.get(event.thread) != "running":
            return
        category = self.polls if category == "polls" else category
        weight = 1 / sum(state == "running" for state in self.states.values())
        self.weights[category] += weight
        if in_kernel(event.stack):
            self.of_kernel[category] += weight


def first(rules: Sequence[tuple[str, str]], names: Sequence[str]) -> str | None:
    """The first rule that a function fits, from its beginning."""
    return next((rule for rule, pattern in rules if any(re.match(pattern, name) for name in names)), None)


def in_kernel(stack: Stack) -> list[str]:
    """The kernel's functions of a stack: none of one that was seen in user code."""
    return [name for name, file in stack if file == _KERNEL_FILE]


def doing(event: Event, collector: str) -> str:
    """The category of a sample on a CPU."""
    kernel = in_kernel(event.stack)
    if kernel:
        return _in_kernel(kernel)
    return _in_user_code(event, collector) if event.stack else UNNAMED


def _in_kernel(names: Sequence[str]) -> str:
    if any(map(_SWITCHING.match, names)) and any(map(_PREEMPTED.match, names)):
        return "run-queue-wait"
    found = first(_KERNEL, names) or "kernel-cpu"
    return "file-io-cpu" if found == "page-faults" and any(map(_READING.match, names)) else found


def _in_user_code(event: Event, collector: str) -> str:
    function, file = event.stack[0]
    if re.search(r"/ld-(linux|musl|2)", file):
        return "start-and-exit"
    # Java's threads have names, the functions of the other collectors.
    names = [event.comm] if collector == "java" else [name for name, _ in event.stack]
    known = _COLLECTORS.get(collector)
    if known is not None and any(map(known.match, names)):
        return "garbage-collection"
    if function == "[unknown]" and "libc.so" in file:
        return UNNAMED
    return first(_USER, [function]) or "compute"


def events(data: Path, build_ids: Path) -> Iterator[Event]:
    """Perf's records as it prints them, in order of time."""
    command = ["perf", "--buildid-dir", str(build_ids), "script", "--ns", "--no-inline", "-i", str(data)]
    command += [
        "--show-lost-events",
        "--show-switch-events",
        "-F",
        "comm,pid,tid,cpu,time,event,ip,sym,dso,trace",
    ]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace"
    ) as printing:
        assert printing.stdout is not None  # noqa: S101 - it was asked for
        event = None
        for line in printing.stdout:
            if "PERF_RECORD_LOST" in line:
                raise RuntimeError(f"perf lost events: {line.strip()}")
            frame = _FRAME.match(line)
            if frame and event is not None:
                event.stack.append((frame[1], frame[2]))
                continue
            new = _event(line)
            if new is not None:
                if event is not None:
                    yield event
                event = new
        if event is not None:
            yield event


def _event(line: str) -> Event | None:
    """The head of a record."""
    if got := _ON_OR_OFF.match(line):
        return Event(int(got[3]) * 1_000_000_000 + int(got[4]), got[5], got[1], int(got[2]), "")
    if head := _HEAD.match(line):
        at = int(head[4]) * 1_000_000_000 + int(head[5])
        return Event(at, head[6].rpartition(":")[2], head[1], int(head[3]), head[7])
    return None


class Recorder:
    """Perf, waiting to begin; recording within `with`."""

    def __init__(self, directory: Path) -> None:
        self.data = directory / "events.data"
        self._pipes = [directory / "control", directory / "answer"]
        for pipe in self._pipes:
            pipe.unlink(missing_ok=True)
            os.mkfifo(pipe)
        wanted = ["-e", _SAMPLE, "-e", "sched:sched_switch"]
        for name in _NO_STACK:
            wanted += ["-e", f"sched:{name}/call-graph=no/"]
        control = f"fifo:{self._pipes[0]},{self._pipes[1]}"
        # Reading and writing: opening it waits for nobody.
        self._ends = [os.open(pipe, os.O_RDWR) for pipe in self._pipes]
        # A second program's clock is this process's.
        clock = ["-k", "CLOCK_MONOTONIC", "-D", "-1", "--control", control]
        command = [
            "perf",
            "record",
            "-q",
            "-a",
            "-g",
            "-m",
            _BUFFER,
            "--switch-events",
            "-o",
            str(self.data),
            *clock,
            *wanted,
        ]
        self._perf = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)

    def _tell(self, word: str) -> None:
        os.write(self._ends[0], f"{word}\n".encode())
        # It opens the files of all that runs on the machine: one may be a pipe that nobody writes to.
        if not select.select([self._ends[1]], [], [], _PATIENCE_S)[0]:
            self._end(self._perf.kill)
            raise RuntimeError(f"perf does not answer to {word}")
        os.read(self._ends[1], 16)

    def _end(self, how: Callable[[], None]) -> str:
        how()
        said = self._perf.communicate()[1]
        for end in self._ends:
            os.close(end)
        return said

    def __enter__(self) -> Recorder:
        self._tell("enable")
        return self

    def __exit__(self, *_: object) -> None:
        self._tell("disable")
        said = self._end(self._perf.terminate)
        if not self.data.exists():
            raise RuntimeError(f"perf recorded nothing: {said.strip()}")


def swept(
    data: Path,
    build_ids: Path,
    main: int,
    *,
    polls: str = "network",
    collector: str = "",
    threads: set[int] | None = None,
    between: tuple[int, int] | None = None,
) -> Truth:
    """The truth of a program that was started, or of a process between two moments."""
    sweep = Sweep(threads or set(), main, polls)
    begin, end = between or (None, None)
    for event in events(data, build_ids):
        if begin is None:
            # What happens before the program is loaded is not its own.
            if event.name == "sched_process_exec" and event.thread == main:
                begin = event.at
                sweep = Sweep({main}, main, polls)
                sweep.states[main] = "running"
                sweep.now = begin
            continue
        if end is not None and event.at > end:
            break
        if sweep.now < begin <= event.at:
            # Until then only the states of threads were of interest.
            sweep.forget(begin)
        sweep.go_on(event.at)
        sweep.take(event, collector)
        if end is None and main not in sweep.states:
            end = event.at
            break
    if begin is None or end is None:
        raise RuntimeError("the program did not begin, or did not end, while perf recorded")
    sweep.go_on(end)
    return _truth(sweep, end - begin)


def _truth(sweep: Sweep, wall: int) -> Truth:
    """Time on a CPU is divided as its samples are."""
    shares = {name: spent / wall for name, spent in sweep.spent.items()}
    running = shares.pop("running", 0.0)
    weights = sum(sweep.weights.values())
    for name, weight in sweep.weights.items():
        shares[name] = shares.get(name, 0.0) + running * weight / weights
    unnamed = shares.pop(UNNAMED, 0.0)
    kernel = {name: running * weight / weights for name, weight in sweep.of_kernel.items()}
    others = dict(sweep.others.most_common(5))
    return Truth(wall / 1e9, shares, kernel, unnamed, sweep.ready / 1e9, sweep.running / 1e9, others)
