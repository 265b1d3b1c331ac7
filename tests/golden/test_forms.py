"""Whatever is shown of the frozen runs, lessons and ledgers stays byte for byte the same.

`expected/<case>/` holds what was shown; `sums.txt` there has the sums of what is too long to keep.

    LATLAB_GOLDEN=write python -m pytest tests/golden

writes all of it again, for a change that is meant; `LATLAB_GOLDEN=FOLDER` writes what is shown now into that
folder, long forms too, so that two commits can be compared.
"""

from __future__ import annotations

import functools
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from tests.golden import cases, forms
from tests.golden.forms import Forms

from latlab import lessons
from latlab.run import reader

EXPECTED: Final = cases.HERE / "expected"
WISH: Final = os.environ.get("LATLAB_GOLDEN", "")
SUMS: Final = "sums.txt"
#: Runs whose page and data are kept to be read.
READ: Final = ("synthetic",)


def check(case: str, made: Forms) -> None:
    """Compares all forms of a case with what is kept, or writes them."""
    kept = {name: form for name, form in made.items() if forms.is_kept(name)}
    kept[SUMS] = forms.sums({name: form for name, form in made.items() if name not in kept})
    if WISH:
        write(Path(WISH) / case, made) if WISH != "write" else write(EXPECTED / case, kept)
        return
    before = {path.name: path.read_bytes() for path in (EXPECTED / case).iterdir()}
    assert sorted(kept) == sorted(before)
    for name, form in kept.items():
        new, old = forms.bytes_of(form), before[name]
        assert new == old, f"{name} of {case}:\n{forms.difference(old.decode(), new.decode())[:4000]}"


def write(folder: Path, made: Forms) -> None:
    """Writes the forms in place of what was there."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, form in made.items():
        (folder / name).write_bytes(forms.bytes_of(form))


@pytest.fixture(autouse=True)
def same_time_everywhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What is said of a day is the same in every time zone."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


@pytest.fixture(autouse=True)
def read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every form of a case is made of one reading: that a file reads the same twice is no matter of forms."""
    monkeypatch.setattr(reader, "read", functools.cache(reader.read))


@pytest.fixture(scope="module")
def synthetic() -> str:
    return cases.synthetic()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Forms:
    return forms.as_seen_first(cases.FILES["synthetic"], tmp_path_factory.mktemp("whole"))


@pytest.mark.parametrize("name", cases.FILES)
def test_a_run_in_every_form(name: str, tmp_path: Path) -> None:
    made = forms.of_run(cases.FILES[name], tmp_path)
    if name not in READ:
        for form in ("body.html", "data.txt"):
            made[f"{form}.sha256"] = made.pop(form)
    check(name, made)


@pytest.mark.parametrize("change", cases.CHANGES, ids=lambda change: change.__name__.replace("_", "-"))
def test_a_run_of_which_something_is_missing(
    change: cases.Change, synthetic: str, whole: Forms, tmp_path: Path
) -> None:
    file = tmp_path / "run.json"
    file.write_bytes(cases.changed(change, synthetic))
    check(change.__name__.replace("_", "-"), forms.of_missing(file, tmp_path, whole))


def test_several_runs_over_one_another(tmp_path: Path) -> None:
    files = {name: cases.FILES[name] for name in ("synthetic", "standard", "quick")}
    check("several", forms.of_several(files, tmp_path))


@pytest.mark.parametrize("name", lessons.LESSONS)
def test_a_lesson_in_every_form_and_with_each_part_missing(name: str) -> None:
    check(f"lesson-{name}", forms.of_lesson(name))


@pytest.mark.parametrize("name", ["explained-1", "explained-3"])
def test_a_ledger_in_every_form(name: str, tmp_path: Path) -> None:
    check(name, forms.of_ledger(name, tmp_path))
