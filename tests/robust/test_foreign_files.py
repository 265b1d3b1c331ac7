"""The user's own files, under names that are nearly latlab's, where latlab removes what killed runs left."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest
from tests.leftovers import contents, leave_folder, plant
from tests.robust.conftest import BRIEF

if TYPE_CHECKING:
    from tests.robust.conftest import Place

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="scratch folders are made on Linux only"),
]


@pytest.mark.parametrize("where", ["--dir", "the cache"])
def test_measuring_removes_what_a_killed_run_left_and_nothing_of_the_users(place: Place, where: str) -> None:
    directory = place.root / ("here" if where == "--dir" else "home/.cache")
    directory.mkdir(exist_ok=True)
    place.environment.pop("XDG_CACHE_HOME", None)
    kept = plant(directory)
    left = leave_folder(directory)
    done = place.called(*BRIEF, *(["--dir", str(directory)] if where == "--dir" else []))
    assert done.returncode == 0, done.stderr
    assert not left.exists()
    assert contents(directory) == kept


def test_what_the_user_put_into_a_folder_of_ours_stays_there(place: Place) -> None:
    left = leave_folder(place.root / "here")
    (left / "0/thesis.txt").write_text("three years")
    done = place.called(*BRIEF, "--dir", str(place.root / "here"))
    assert done.returncode == 0, done.stderr
    assert sorted(contents(left)) == ["0", "0/thesis.txt", "lock"]
    (left / "0/thesis.txt").unlink()
    assert place.called(*BRIEF, "--dir", str(place.root / "here")).returncode == 0
    assert not left.exists()


def test_a_file_of_the_users_beside_the_run_is_not_replaced_by_a_report(place: Place) -> None:
    here = place.root / "here"
    (here / "mine.html").write_text("three years")
    done = place.called("measure", "--only", "clock.read", "--budget", "0.1", "--out", "mine.latlab.jsonl")
    assert done.returncode == 0, done.stderr
    assert "no report was written: mine.html already exists" in done.stderr
    assert (here / "mine.html").read_text() == "three years"
    assert sorted(contents(here)) == ["mine.html", "mine.latlab.jsonl"]
