"""Files that list hosts and their groups."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.calling import called

from latlab.errors import UserError
from latlab.fleet.lists import groups_in, hosts_in


def test_a_line_is_a_host_and_its_group(tmp_path: Path) -> None:
    file = tmp_path / "racks"
    file.write_text("# racks\nnode1 rack1\n\n10.0.0.2\track2 # by address\nnode1 rack1\n")
    assert groups_in(file) == {"node1": "rack1", "10.0.0.2": "rack2"}
    file.write_text("node1\nnode2 # slow\n")
    assert hosts_in(file) == ["node1", "node2"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("node1 rack1\nnode2\n", "line 2: 'node2' is not a host and its group"),
        ("node1 rack1 top\n", "line 1: 'node1 rack1 top' is not a host and its group"),
        ("node1 rack1\n#\nnode1 rack2\n", "line 3: 'node1' is in 'rack1' already, and cannot be in 'rack2'"),
        ("# nothing\n", "names no host"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "racks"
    file.write_text(text)
    with pytest.raises(UserError) as error:
        groups_in(file)
    assert str(file) in str(error.value)
    assert said in str(error.value)


def test_the_command_ends_with_2_before_it_asks_anybody(tmp_path: Path) -> None:
    (tmp_path / "racks").write_text("node1 rack1\nnode2\n")
    survey = ["fleet", "survey", "--scheduler", "127.0.0.1:1", "--groups"]
    done = called([*survey, "racks", "--links"], tmp_path, os.environ)
    assert done.returncode == 2
    assert "'racks', line 2: 'node2' is not a host and its group" in done.stderr
    done = called([*survey, "nowhere", "--links"], tmp_path, os.environ)
    assert done.returncode == 2
    assert "'nowhere': No such file or directory" in done.stderr
    done = called([*survey, "racks"], tmp_path, os.environ)
    assert done.returncode == 2
    assert "add --links" in done.stderr
