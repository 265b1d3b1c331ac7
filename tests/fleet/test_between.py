"""Two surveys of one fleet: what changed on all hosts, on single ones, and what nobody may be told."""

from __future__ import annotations

import json
import math
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.calling import called
from tests.fleet.files import Change, run_of

from latlab.compare.sides import Named, Objections
from latlab.errors import UserError
from latlab.fleet import between, change_words
from latlab.fleet.between import _judged, _Pair
from latlab.fleet.changes import Changes
from latlab.fleet.host import Class, Host, Key, Value
from latlab.report import compared
from latlab.run.model import Machine, Settings

#: How much slower the memory of each host is after than before.
Slower = dict[str, float]


def as_before(header: dict[str, Any]) -> None:
    """Changes nothing."""


@pytest.fixture
def surveyed(tmp_path: Path) -> Callable[..., Named]:
    """`surveyed("after", names, slower={}, change=...)` writes the folder of a survey, and names it."""

    def write(
        label: str, names: list[str], slower: Slower | None = None, change: Change = as_before
    ) -> Named:
        folder = tmp_path / label
        folder.mkdir()
        for number, name in enumerate(names):
            # Of both surveys other seeds: other spreads, other ids.
            seed = 1000 * len(label) + number
            text = run_of(name, seed, (slower or {}).get(name, 1.0), change, short=True)
            (folder / f"{number}.latlab.jsonl").write_text(text)
        return Named(label, tuple(sorted(folder.iterdir())))

    return write


NAMES = [f"node{number}" for number in range(12)]


def of_host(found: Changes, name: str) -> Any:  # noqa: ANN401 - a Compared
    return next(own for own in found.hosts if own.name == name)


def test_what_changed_on_all_hosts_is_said_of_all_and_of_none_alone(surveyed: Callable[..., Named]) -> None:
    found = between.between(surveyed("before", NAMES), surveyed("after", NAMES, dict.fromkeys(NAMES, 1.5)))
    said = change_words.verdict(found)
    assert said.startswith("All 12 hosts: ")
    assert " times slower" in said
    assert found.kind == "changed"
    assert found.changed == ()
    assert {own.figure.probe.split(".")[0] for own in found.figures if own.figure.kind == "changed"} == {
        "memory"
    }
    for own in found.figures:
        if own.figure.kind == "changed":
            assert own.hosts == own.agreeing == 12
            assert own.figure.ratio == pytest.approx(1.5, rel=0.05)
        else:
            assert own.figure.kind in {"same", "cannot-tell"}


def test_one_host_that_changed_is_named_alone_with_what_differs_in_its_description(
    surveyed: Callable[..., Named],
) -> None:
    def no_huge_pages(header: dict[str, Any]) -> None:
        if header["machine"]["os"]["host_name"] == "node7":
            header["machine"]["memory"]["thp"]["enabled"] = "never"

    found = between.between(
        surveyed("before", NAMES), surveyed("after", NAMES, {"node7": 2.0}, no_huge_pages)
    )
    assert change_words.verdict(found).startswith("node7 alone: ")
    assert [own.name for own in found.changed] == ["node7"]
    own = of_host(found, "node7")
    assert own.because[0].relative == pytest.approx(2.0, rel=0.1)
    assert own.because[0].low < own.because[0].relative < own.because[0].high
    assert own.differs == ("transparent huge pages: madvise against never",)
    # It is left out of what the others share.
    assert all(each.figure.kind != "changed" for each in found.figures)
    assert {each.hosts for each in found.figures if each.figure.probe == "memory.load.dependent"} == {11}


def test_a_host_that_became_faster_than_the_others_is_named_too(surveyed: Callable[..., Named]) -> None:
    found = between.between(surveyed("before", NAMES, {"node3": 2.0}), surveyed("after", NAMES))
    assert [own.name for own in found.changed] == ["node3"]
    assert "times faster" in change_words.verdict(found)


def test_nothing_changed_and_hosts_of_one_survey_only_are_counted(surveyed: Callable[..., Named]) -> None:
    found = between.between(surveyed("before", NAMES), surveyed("after", [*NAMES[2:], "new"]))
    said = change_words.verdict(found)
    assert found.kind in {"same", "cannot-tell"}
    assert "10 hosts" in said
    assert "2 are only in before: node0 and node1" in said
    assert "1 is only in after: new" in said
    assert found.compared == 10


def test_hosts_with_a_new_kernel_are_a_group_of_their_own(surveyed: Callable[..., Named]) -> None:
    def updated(header: dict[str, Any]) -> None:
        if int(header["machine"]["os"]["host_name"][4:]) < 6:
            header["machine"]["os"]["kernel_release"] = "7.0"

    slower = dict.fromkeys(NAMES[:6], 1.5)
    found = between.between(surveyed("before", NAMES), surveyed("after", NAMES, slower, updated))
    said = change_words.verdict(found)
    assert said.startswith("6 hosts (kernel 6.18.44-fc-v669 to 7.0): ")
    assert found.changed == ()
    assert found.environment == ("kernel: 6.18.44-fc-v669 against 7.0 (6 hosts)",)
    changed = {own.group for own in found.figures if own.figure.kind == "changed"}
    assert [found.groups[group] for group in changed] == [("kernel 6.18.44-fc-v669 to 7.0", 6)]


def test_what_cannot_be_compared_is_not_and_the_field_is_named(surveyed: Callable[..., Named]) -> None:
    def quota(header: dict[str, Any]) -> None:
        if header["machine"]["os"]["host_name"] == "node5":
            header["machine"]["limits"]["cgroup"]["cpu_quota"] = 50_000
        header["machine"]["dir"]["file_system"]["options"] = ["ro"]

    found = between.between(surveyed("before", NAMES), surveyed("after", NAMES, {"node5": 2.0}, quota))
    own = of_host(found, "node5")
    assert (own.kind, own.why) == ("not-comparable", "cgroup's CPU quota: none against 50000")
    assert "1 cannot be compared: node5" in change_words.verdict(found)
    assert found.changed == ()
    disk = [each.figure for each in found.figures if each.figure.probe.startswith("storage.")]
    assert disk
    assert {each.why for each in disk} == {"mount options: rw, relatime and discard against ro"} or all(
        each.why.startswith("mount options: ") for each in disk
    )


def test_fewer_than_five_hosts_are_judged_together_only(surveyed: Callable[..., Named]) -> None:
    found = between.between(surveyed("before", NAMES[:3]), surveyed("after", NAMES[:3], {"node1": 3.0}))
    assert {own.kind for own in found.hosts} == {"no-peers"}
    assert found.changed == ()
    ratios = of_host(found, "node1").as_json()["figures"]
    assert max(own["ratio"] for own in ratios) == pytest.approx(3.0, rel=0.2)


def hosts_of(seed: int, sides: float = 0.05) -> list[_Pair]:
    """Twenty hosts with twelve figures that differ by chance between two surveys."""
    dice = random.Random(seed)
    which = Class(("CPU",) * 6, 1, "disk", ("quick",))
    keys = [Key("memory.load.dependent", str(number)) for number in range(12)]

    def host(name: str) -> Host:
        figures = {key: Value(dice.lognormvariate(0.0, sides), None, "ns", 1) for key in keys}
        return Host(name, which, Machine({}), Settings(), figures, 0, 1)

    pairs = ((host(str(number)), host(str(number))) for number in range(20))
    return [_Pair(a, b, Objections((a,), (b,))) for a, b in pairs]


def test_surveys_of_an_unchanged_fleet_are_called_changed_as_often_as_is_said() -> None:
    shared = single = 0
    for seed in range(400):
        figures, hosts = _judged([hosts_of(seed)], {}, ("A", "B"), 0.01)
        shared += any(own.figure.kind == "changed" for own in figures)
        single += any(own.kind == "changed" for own in hosts)
    # 20 of 400 are what is promised at most, and 36 come once in 3,000 times; of single hosts 0.4 are.
    assert shared < 36
    assert single < 5


# ---------------------------------------------------------------------------------------------- the command


def compared_by(folder: Path, *words: str) -> tuple[int, str, str]:
    done = called(["compare", *words], folder, os.environ)
    return done.returncode, done.stdout, done.stderr


def test_the_command_compares_folders_of_surveys(surveyed: Callable[..., Named], tmp_path: Path) -> None:
    surveyed("before", NAMES)
    surveyed("after", NAMES, {"node7": 2.0})
    code, said, _ = compared_by(tmp_path, "before", "after", "--html", "change.html")
    assert code == 0
    assert said.startswith("node7 alone: ")
    assert "before (12 hosts, 12 runs) against after (12 hosts, 12 runs)" in " ".join(said.split())
    page = (tmp_path / "change.html").read_text()
    assert page.index("node7") < page.index("node0")
    found = json.loads(compared_by(tmp_path, "before", "after", "--json")[1])
    assert found["verdict"] == "changed"
    assert [own["name"] for own in found["hosts"] if own["verdict"] == "changed"] == ["node7"]
    assert all(math.isfinite(own["ratio"]) for own in found["figures"])
    assert {own["verdict"] for own in found["figures"]} <= {
        "changed",
        "same",
        "cannot-tell",
        "not-comparable",
    }


def test_surveys_without_a_common_host_are_a_mistake_and_across_compares_them(
    surveyed: Callable[..., Named], tmp_path: Path
) -> None:
    surveyed("before", NAMES[:2])
    surveyed("after", NAMES[2:4])
    code, said, wrong = compared_by(tmp_path, "before", "after")
    assert (code, said) == (2, "")
    assert "no host is on both sides: before has node0 and node1; after has node2 and node3" in wrong
    assert len(wrong.splitlines()) == 1
    code, said, _ = compared_by(tmp_path, "before", "after", "--across", "--json")
    assert code == 0
    assert "known_from" in json.loads(said)


def test_a_run_on_both_sides_is_a_mistake(surveyed: Callable[..., Named], tmp_path: Path) -> None:
    surveyed("before", NAMES[:3])
    code, said, wrong = compared_by(tmp_path, "before", "a=before")
    assert (code, said) == (2, "")
    assert "is on both sides" in wrong


def test_one_host_a_side_is_compared_as_runs_whatever_its_names(
    surveyed: Callable[..., Named], tmp_path: Path
) -> None:
    surveyed("before", ["old", "old"])
    surveyed("after", ["new"])
    code, said, _ = compared_by(tmp_path, "before", "after", "--json")
    assert code == 0
    assert [len(own["runs"]) for own in json.loads(said)["sides"]] == [2, 1]


def test_runs_without_names_are_of_one_machine(surveyed: Callable[..., Named], tmp_path: Path) -> None:
    def anonymous(header: dict[str, Any]) -> None:
        header["machine"]["os"]["host_name"] = None

    surveyed("before", NAMES[:2], change=anonymous)
    surveyed("after", NAMES[:2], change=anonymous)
    code, said, _ = compared_by(tmp_path, "before", "after", "--json")
    assert code == 0
    assert "known_from" in json.loads(said)


def test_the_page_shows_groups_and_what_is_in_one_survey_only(surveyed: Callable[..., Named]) -> None:
    found = between.between(surveyed("before", NAMES), surveyed("after", NAMES[1:]))
    page = compared.document(found)
    (table,) = (section.listings[0].table for section in page.sections if section.id == "hosts")
    assert ("node0", "only in before", "") in table.rows
    assert page.title == change_words.verdict(found)


def test_no_host_in_common_is_named_as_an_error_of_the_user(surveyed: Callable[..., Named]) -> None:
    with pytest.raises(UserError, match="no host is on both sides"):
        between.between(surveyed("before", ["a", "b"]), surveyed("after", ["c"]))
