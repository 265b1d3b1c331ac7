"""Gate files and their verdicts: what is held, broken or undecided, and each mistake in one line."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.compare.conftest import Made

from latlab.compare import Side, compare
from latlab.compare.alarms import alarms
from latlab.compare.gate import Gates, first, read
from latlab.compare.outcome import Check, check
from latlab.errors import UserError
from latlab.run.model import Record
from latlab.run.run import Run

Written = Callable[[str], Gates]


@pytest.fixture
def written(tmp_path: Path) -> Written:
    """Reads what stands in a gate file."""

    def write(text: str) -> Gates:
        file = tmp_path / "gates.toml"
        file.write_text(text, encoding="utf-8")
        return read(file)

    return write


def slower(record: Record) -> float:
    """RAM takes 1.5 times as long; two rates fall to a half."""
    if record.unit == "bytes_per_s":
        return 0.5
    point = record.point
    in_ram = record.probe == "memory.load.dependent" and (point.working_set_bytes or 0) >= 64 << 20
    return 1.5 if in_ram else 1.0


def checked(made: Made, gates: Gates, change: Callable[[Record], float] = lambda _: 1.0) -> Check:
    """Five runs against five, which lie within 2 % of one another."""
    a = [made(seed) for seed in range(5)]
    b: list[Run] = [made(seed, change=change) for seed in range(5, 10)]
    found = compare(Side("old", tuple(a)), Side("new", tuple(b)), same=gates.same)
    return check(gates, found)


def verdicts(of: Check) -> list[str]:
    return [each.verdict for each in of.outcomes]


@pytest.mark.parametrize(
    ("limits", "verdict"),
    [
        ('max = "200 ns"', "held"),
        ('max = "0.2 µs"', "held"),
        ('max = "98.5 ns"', "undecided"),
        ('max = "50 ns"', "broken"),
        ('min = "50 ns"', "held"),
        ('min = "98.5 ns"', "undecided"),
        ('min = "200 ns"', "broken"),
        ('max = "200 ns", min = "150 ns"', "broken"),
        ('max = "200 ns", min = "98.5 ns"', "undecided"),
    ],
)
def test_a_budget_is_held_or_broken_by_the_whole_range(
    made: Made, written: Written, limits: str, verdict: str
) -> None:
    assert verdicts(checked(made, written(f'[gate]\n"RAM" = {{ {limits} }}\n'))) == [verdict]


def test_a_change_is_broken_in_the_bad_direction_only(made: Made, written: Written) -> None:
    gates = written(
        '[gate]\n"RAM" = { change = "25 %" }\n"memory.bandwidth:read, 256 MiB, 1 *" = { change = "25 %" }\n'
    )
    assert verdicts(checked(made, gates)) == ["held", "held"]
    assert verdicts(checked(made, gates, slower)) == ["broken", "broken"]
    assert verdicts(checked(made, gates, lambda record: 1 / slower(record))) == ["held", "held"]
    # The near end of the interval is not beyond: neither.
    assert verdicts(checked(made, written('[gate]\n"RAM" = { change = "50 %" }'), slower)) == ["undecided"]


def test_what_cannot_be_compared_is_undecided_and_says_why(made: Made, written: Written) -> None:
    gates = written('[gate]\n"RAM" = { change = "25 %", max = "200 ns" }\n')
    one = Run(made(1).header, [each for each in made(1).records if each.rank != "headline"], made(1).footer)
    found = check(gates, compare(Side("old", (made(2),)), Side("new", (one,))))
    assert verdicts(found) == ["undecided"]
    assert found.outcomes[0].why == "max 200 ns: point: only in old; change: point: only in old"


def test_a_figure_measured_once_gives_no_range_and_no_verdict(made: Made, written: Written) -> None:
    found = check(
        written('[gate]\n"RAM" = { max = "200 ns" }'), compare(Side("a", (made(1),)), Side("b", (made(2),)))
    )
    assert verdicts(found) == ["undecided"]
    assert found.outcomes[0].why.endswith("max 200 ns: measured once, which gives no range")


def test_codes_are_of_errors_and_undecided_fails_only_where_that_is_asked(
    made: Made, written: Written
) -> None:
    broken, undecided = '"RAM" = { max = "50 ns"', '"L1*" = { max = "1.084 ns"'

    def code(*gates: str, undecided: str = "pass") -> int:
        lines = "\n".join(f"{gate} }}" for gate in gates)
        return checked(made, written(f'undecided = "{undecided}"\n[gate]\n{lines}\n')).code

    assert code(broken) == 1
    assert code(f'{broken}, level = "warn"') == 0
    assert code(undecided) == 0
    assert code(undecided, undecided="fail") == 3
    assert code(f'{undecided}, level = "warn"', undecided="fail") == 0
    assert code(broken, undecided, undecided="fail") == 1


def test_a_key_is_two_globs_or_a_headline_figure(made: Made, written: Written) -> None:
    def named(key: str, quantile: str = "p50") -> set[tuple[str, str]]:
        gates = written(f'[gate]\n\'{key}\' = {{ max = "10 s", quantile = "{quantile}" }}\n')
        return {(each.figure.probe, each.name) for each in checked(made, gates).outcomes}

    assert named("RAM") == {("memory.load.dependent", "RAM")}
    assert named("disk, random 4 KiB read") == {("storage.read.random", "disk, random 4 KiB read")}
    assert named("L? *") == {("memory.load.dependent", "L1 32 KiB"), ("memory.load.dependent", "L2 1 MiB")}
    assert named("memory.load.dependent:64 MiB*") == {
        ("memory.load.dependent", "memory.load.dependent: 64 MiB, 4k pages, page-local")
    }
    assert named("thread*", "p99") == {("kernel.spawn", "kernel.spawn: p99 of thread")}
    assert len(named("kernel.*:*")) > 10


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("= 3", "is not a TOML file: Invalid"),
        ("[" * 5000, "is not a TOML file: "),
        ("", "no gates: write [gate]"),
        ("gate = 3", "no gates: write [gate]"),
        ("sam = '5 %'\n", "'sam' is not a known key; did you mean same?"),
        ("same = 5\n", "same: '5' is not a percentage; write it as"),
        ("same = '5'\n", "same: '5' is not a percentage; write it as 5%"),
        (
            "undecided = 'skip'\n[gate]\nRAM = { max = '1 s' }",
            'undecided: \'skip\': write "pass" or "fail" or',
        ),
        ("[gate]\nRAM = 3", "[gate] 'RAM': write { change = \"25 %\" }"),
        ("[gate]\nRAM = { }", "[gate] 'RAM': no limit: write max ="),
        ("[gate]\nRAM = { mx = '1 s' }", "[gate] 'RAM': 'mx' is not a known key; did you mean max?"),
        ("[gate]\nRAM = { max = 130 }", "[gate] 'RAM': max: '130' has no unit: write it as"),
        (
            "[gate]\nRAM = { max = '130' }",
            "[gate] 'RAM': max: '130': '' is not a unit; use ps, ns, us, µs, ms",
        ),
        ("[gate]\nRAM = { max = '1 GiB/s' }", "[gate] 'RAM': max: '1 GiB/s': 'GiB/s' is not a unit"),
        ("[gate]\nRAM = { min = '0 ns' }", "[gate] 'RAM': min: '0 ns' is not above zero"),
        (
            "[gate]\nRAM = { change = '9000 %' }",
            "[gate] 'RAM': change: '9000 %' is not above 0 % and at most",
        ),
        ("[gate]\nRAM = { change = '3 %' }", "change: 3.0 % is less than what counts as the same, 10 %"),
        ("[gate]\nRAM = { max = '1 s', quantile = 'p90' }", 'quantile: \'p90\': write "p50" or "p99"'),
        ("[gate]\nRAM = { max = '1 s', level = 'fatal' }", 'level: \'fatal\': write "error" or "warn"'),
        ("[gate]\nRAM = { max = '1 GB/s' }", "[gate] 'RAM': 'RAM' has another unit: write a time"),
        ("[gate]\n'memory.bandwidth:*' = { min = '1 s' }", "has another unit: write a rate, such as 1 GB/s"),
        (
            "[gate]\n'disk reads' = { max = '1 s' }",
            "[gate] 'disk reads': no figure matches; latlab compare -v lists",
        ),
        ("[gate]\n'disk, random 4 KiB reed' = { max = '1 s' }", "did you mean 'disk, random 4 KiB read'?"),
        ("[gate]\n'kernel.syscall' = { max = '1 s' }", "no figure has that name: write 'kernel.syscall:*'"),
        (
            "[gate]\n'kernel.syscall:x' = { max = '1 s' }",
            "no figure has that point: write 'kernel.syscall:*'",
        ),
        ("[gate]\n'kernel.sycall:x' = { max = '1 s' }", "no figure matches; did you mean 'kernel.syscall'?"),
        ("[gate]\nRAM = { max = '1 s', quantile = 'p99' }", "no such figure has a p99: write p50"),
        ('[gate]\n"a\\u001b" = { }\n', r"[gate] 'a\\x1b': no limit"),
    ],
)
def test_a_mistake_is_one_line_with_file_key_and_what_to_write(
    made: Made, written: Written, text: str, said: str
) -> None:
    with pytest.raises(UserError) as caught:
        checked(made, written(text))
    line = str(caught.value)
    assert "gates.toml" in line
    assert said in line
    assert "\n" not in line
    assert "\x1b" not in line


def test_a_file_that_is_none_is_said(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="latlab gate --init writes one"):
        read(tmp_path / "missing.toml")
    with pytest.raises(UserError, match="directory"):
        read(tmp_path)
    (tmp_path / "binary").write_bytes(b"\xff\xfe" * 9)
    with pytest.raises(UserError, match="is not a TOML file"):
        read(tmp_path / "binary")
    (tmp_path / "large").write_bytes(b"#" * (1 << 21))
    with pytest.raises(UserError, match="larger than 1 MiB"):
        read(tmp_path / "large")


# -------------------------------------------------------------------------------- a new file, and alarms


def test_a_new_file_asks_what_one_run_shows_and_is_read_again(made: Made, written: Written) -> None:
    text = first(made(0), [made(seed) for seed in range(1, 7)])
    gates = written(text)
    assert 5 <= len(gates.gates) <= 10
    assert {each.key for each in gates.gates} >= {"RAM", "L1 *"}
    assert all(each.change is not None and 0.1 <= each.change <= 1 for each in gates.gates)
    # What stands behind the limits is one as well.
    whole = written(re.sub(r' \}  # [^;]*; (max = "[^"]*")', r", \1 }", text))
    assert all(each.largest is not None for each in whole.gates)
    assert checked(made, whole).code == 0
    assert checked(made, whole, lambda _: 3.0).code == 1


def test_a_new_file_without_kept_runs_asks_for_large_changes_only(made: Made, written: Written) -> None:
    text = first(made(0), [])
    assert "the usual variation between runs of one machine" in text
    assert all(each.change is not None and each.change > 1 for each in written(text).gates)


def test_a_machine_against_itself_has_few_false_alarms_and_more_runs_show_smaller_changes(made: Made) -> None:
    runs = [made(seed) for seed in range(8)]
    one, four = alarms(runs, 1), alarms(runs, 4)
    assert (one.runs, one.kept, four.runs, four.kept) == (1, 6, 4, 0)
    assert one.changed <= 0.01 * one.figures
    assert four.changed <= 0.01 * four.figures
    assert four.verdicts.total() == 24 * len(four.visible)
    assert four.visible["RAM"] < one.visible["RAM"]
