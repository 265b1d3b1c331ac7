"""What all tests share: where the project is, a home of their own, and who runs beside whom."""

from __future__ import annotations

import gc
import itertools
import os
import re
import secrets
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from latlab.environment import changing

ROOT = Path(__file__).resolve().parent.parent
Calibrated = Callable[[Path], None]

#: Files of `explain` that look at one program, and of `lessons` those that look at all of these.
EXPLAINED = ("course", "page", "trace")
OF_ALL_LESSONS = ("every_lesson", "nothing_is_missing", "pages")
#: Folders whose tests wait or measure for long: they begin first, so that nobody waits for them at the end.
LONG = ("lessons", "robust", "explain", "conduct", "browser")


def pytest_configure() -> None:
    """What the tests start has the surroundings that people have.

    A shell that runs tests in the background has SIGINT ignored, `nohup` SIGHUP, and what is built in a
    container often has streams without buffers, compiles every module again, or tunes a numeric library; all
    of that is inherited.
    """
    for name in ("PYTHONDONTWRITEBYTECODE", *changing(os.environ)):
        os.environ.pop(name, None)
    sys.dont_write_bytecode = False
    # Documents and charts are many small objects, and looking through them again and again takes a tenth of
    # the CPU time.
    gc.set_threshold(200_000, 20, 100)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The long ones first."""

    def folder(item: pytest.Item) -> int:
        name = item.path.parent.name
        return LONG.index(name) if name in LONG else len(LONG)

    items.sort(key=folder)


def group_of(test: str) -> str:
    """Tests of one group run in one process, one after another: they share what they have made.

    That is those of a file, and of files that look at the same thing: the charts, a report, its page in a
    browser, a program that was explained, a lesson.
    """
    file, _, name = test.partition("::")
    folder, stem = Path(file).parent.name, Path(file).stem.removeprefix("test_")
    if folder in {"browser", "charts", "report", "stats"} or (folder == "explain" and stem in EXPLAINED):
        return folder
    if folder == "lessons":
        named = re.search(r"\[([a-z-]+)(: |\])", name)
        return f"{folder} {named[1] if named and stem in OF_ALL_LESSONS else stem.replace('_', '-')}"
    return file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Groups side by side, as `make test` wants it."""
    from xdist.scheduler import LoadScopeScheduling  # noqa: PLC0415 - only where somebody asks for it

    groups = LoadScopeScheduling(config, log)
    # Its own groups are modules. Nodes' ids are all that it knows, so no mark could say it.
    groups._split_scope = group_of
    return groups


@pytest.fixture(scope="session")
def root() -> Path:
    """The project's folder."""
    return ROOT


@pytest.fixture(scope="session")
def compilers(pytestconfig: pytest.Config) -> Iterator[None]:
    """Compilers find what belongs to them in the home of the person, not in that of the tests."""
    if sys.platform == "win32":
        yield
        return
    import pwd  # noqa: PLC0415 - Unix only

    home = Path(pwd.getpwuid(os.getuid()).pw_dir)
    places = {
        "RUSTUP_HOME": home / ".rustup",
        "CARGO_HOME": home / ".cargo",
        # Go compiles its own library first, which takes twelve seconds of CPU time: once for all sessions.
        "GOCACHE": Path(pytestconfig.cache.mkdir("go")),
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, path in places.items():
            if name not in os.environ and path.is_dir():
                patch.setenv(name, str(path))
        yield


@pytest.fixture(scope="session", autouse=True)
def data_of_all(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What several tests share is made before any of them has a home of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data")))
        yield


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Folders that do not exist yet: pytest itself looks through all that there are to name the next one."""
    folder = tmp_path_factory.mktemp("homes")
    return (folder / f"home{number}" for number in itertools.count())


@pytest.fixture(autouse=True)
def own_home(homes: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test reads or fills the run folder of the person who runs it."""
    home = next(homes)
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "data"))
    # Tests run side by side, and none waits for another one's run.
    monkeypatch.setenv("LATLAB_LOCK_NAME", secrets.token_hex(8))
    return home


@pytest.fixture(scope="session")
def calibrated(data_of_all: None, tmp_path_factory: pytest.TempPathFactory) -> Calibrated:
    """Puts into a folder for data what `explain` measures of this machine once.

    It takes a second of CPU time, at every tracing level: the first of the processes that run tests does it.
    """
    if sys.platform != "linux":
        return lambda _data: None
    import fcntl  # noqa: PLC0415 - Unix only

    from tests.explain.in_process import explain  # noqa: PLC0415 - most tests have no use for it

    from latlab.explain.kept import FILE  # noqa: PLC0415 - as above
    from latlab.run.store import Store  # noqa: PLC0415 - as above

    own = tmp_path_factory.getbasetemp()
    measured = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / FILE
    with measured.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not measured.exists():
            for level in "123":
                explain("--no-limits", "--level", level, "--", "true")
            shutil.copy(Store().folder / FILE, measured)

    def put(data: Path) -> None:
        runs = data / "latlab/runs"
        runs.mkdir(parents=True, exist_ok=True)
        shutil.copy(measured, runs)

    return put


@pytest.fixture(scope="session")
def latlab() -> str:
    """The command as it is installed beside the interpreter that runs the tests."""
    name = "latlab.exe" if os.name == "nt" else "latlab"
    return str(Path(sys.executable).parent / name)
