"""What of a path decides how long a job on it takes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from latlab.errors import UserError
from latlab.predict import place
from latlab.predict.place import limits, place_of


def test_a_file_has_its_size_and_what_of_it_is_cached(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(os.urandom(1 << 20))
    found = place_of(str(file))
    assert (found.size, found.files) == (1 << 20, 1)
    # It was written just now.
    assert found.cached == 1 << 20
    assert not found.has_holes


def test_a_file_with_holes_is_known(tmp_path: Path) -> None:
    file = tmp_path / "file"
    with file.open("wb") as opened:
        opened.truncate(1 << 24)
        opened.write(b"x")
    assert place_of(str(file)).has_holes


def test_a_folder_is_the_sum_of_its_files(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name in ("a", "in/b"):
        (tmp_path / name).write_bytes(b"x" * 5000)
    (tmp_path / "link").symlink_to("a")
    found = place_of(str(tmp_path))
    assert (found.size, found.files) == (10_000, 2)


@pytest.mark.parametrize("name", ["nowhere", "/dev/null"])
def test_what_is_no_file_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="neither"):
        place_of(name if name.startswith("/") else str(tmp_path / name))


def test_an_empty_file_has_nothing_to_predict(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    with pytest.raises(UserError, match="holds no bytes"):
        place_of(str(tmp_path / "empty"))


def test_writers_wait_from_a_share_of_memory_on() -> None:
    found = limits(10 << 30)
    assert found.memory == 10 << 30
    if found.dirty is not None:
        assert 0 < found.dirty < 10 << 30


@pytest.mark.parametrize(
    ("kind", "features", "returned"), [("0x0005", 5, True), ("0x0005", 4, False), ("0x0002", 5, False)]
)
def test_a_balloon_that_reports_free_pages_gives_them_back(
    kind: str, features: int, returned: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = tmp_path / "virtio0"
    device.mkdir()
    (device / "device").write_text(kind + "\n")
    (device / "features").write_text("".join(str(int(bit == features)) for bit in range(64)) + "\n")
    monkeypatch.setattr(place, "_VIRTIO", tmp_path)
    assert limits(1 << 30).returned == returned
