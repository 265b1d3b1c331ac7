"""Jobs in the words of the command line."""

from __future__ import annotations

import pytest

from latlab.errors import UserError
from latlab.predict.job import KINDS, Job, Options, parse


def size_of(_name: str) -> tuple[int, int]:
    return 12345, 7


def test_each_kind_is_read_from_its_words() -> None:
    plain = Options()
    assert parse(["read", "30GB"], plain, size_of) == Job("read", 1, 30_000_000_000, plain)
    assert parse(["files", "100000", "10KB"], plain, size_of) == Job("files", 100_000, 10_000, plain)
    assert parse(["syscalls", "1000"], plain, size_of).count == 1000
    assert parse(["read", "./data"], plain, size_of) == Job("read", 1, 12345, plain, "./data", 7)


def test_a_job_says_what_it_is() -> None:
    reading = Options(reading=True)
    assert parse(["files", "100000", "10KB"], reading, size_of).text == "files 100,000 of 10 kB read"
    assert parse(["read", "30GB"], Options(), size_of).text == "read 30 GB"


@pytest.mark.parametrize(
    ("words", "options", "said"),
    [
        ([], Options(), "is not a job"),
        (["fly", "30GB"], Options(), "'fly' is not a job"),
        (["read"], Options(), "latlab predict read takes SIZE|PATH"),
        (["read", "0"], Options(), "a size above zero"),
        (["files", "0", "10KB"], Options(), "a count above zero"),
        (["scan", "lots"], Options(), "lots"),
        (["read", "1GB"], Options(fsync="end"), "--fsync has no meaning for read"),
        (["write", "1GB"], Options(cache="cold"), "--cold and --cached has no meaning for write"),
        (["syscalls", "10"], Options(block=4096), "--block has no meaning for syscalls"),
        (["files", "10", "1KB"], Options(cache="cold"), "--cold has no meaning for writing files"),
        (["random", "10", "4KiB"], Options(cache="cached"), "--cached has no meaning for writing random"),
        (["read", "1GB"], Options(depth=4), "--depth has no meaning for read"),
        (["read", "1GB"], Options(cache="cold", direct=True), "--direct goes past the page cache"),
    ],
)
def test_what_is_no_job_is_refused_in_one_line(words: list[str], options: Options, said: str) -> None:
    with pytest.raises(UserError, match=said.replace("|", r"\|")) as refused:
        parse(words, options, size_of)
    assert "\n" not in str(refused.value)


def test_a_job_is_typed_again_as_it_was_asked_for() -> None:
    for words, options, typed in (
        (["read", "3GB"], Options(direct=True, block=65536), "read 3GB --block 65536 --direct"),
        (["files", "10", "10KB"], Options(reading=True, cache="cold"), "files 10 10kB --cold --read"),
        (["requests", "5"], Options(rtt_s=0.02, at_once=6), "requests 5 --rtt 0.02s --at-once 6"),
        (["read", "./my data"], Options(), "read './my data'"),
    ):
        assert parse(words, options, size_of).asked == typed


def test_every_kind_says_what_it_takes() -> None:
    assert all(takes and what for takes, what in KINDS.values())
