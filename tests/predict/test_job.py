"""Jobs in the words of the command line."""

from __future__ import annotations

import pytest

from latlab.errors import UserError
from latlab.predict.job import KINDS, Job, Options, parse


def size_of(_name: str) -> int:
    return 12345


def test_each_kind_is_read_from_its_words() -> None:
    plain = Options()
    assert parse(["read", "30GB"], plain, size_of) == Job("read", 1, 30_000_000_000, plain)
    assert parse(["files", "100000", "10KB"], plain, size_of) == Job("files", 100_000, 10_000, plain)
    assert parse(["syscalls", "1000"], plain, size_of).count == 1000
    assert parse(["read", "./data"], plain, size_of) == Job("read", 1, 12345, plain, "./data")


def test_a_job_says_what_it_is() -> None:
    reading = Options(reading=True)
    assert parse(["files", "100000", "10KB"], reading, size_of).text == "files 100,000 of 10 kB read"
    assert parse(["read", "30GB"], Options(), size_of).text == "read 30 GB"


@pytest.mark.parametrize(
    ("words", "options", "said"),
    [
        ([], Options(), "is no job"),
        (["fly", "30GB"], Options(), "'fly' is no job"),
        (["read"], Options(), "latlab predict read takes SIZE|PATH"),
        (["read", "0"], Options(), "a size above zero"),
        (["files", "0", "10KB"], Options(), "a count above zero"),
        (["scan", "lots"], Options(), "lots"),
        (["read", "1GB"], Options(fsync="end"), "--fsync has no meaning for read"),
        (["write", "1GB"], Options(cache="cold"), "--cold and --cached has no meaning for write"),
        (["syscalls", "10"], Options(block=4096), "--block has no meaning for syscalls"),
        (["files", "10", "1KB"], Options(cache="cold"), "--cold has no meaning for writing files"),
        (["read", "1GB"], Options(cache="cold", direct=True), "--direct goes past the page cache"),
    ],
)
def test_what_is_no_job_is_refused_in_one_line(words: list[str], options: Options, said: str) -> None:
    with pytest.raises(UserError, match=said.replace("|", r"\|")) as refused:
        parse(words, options, size_of)
    assert "\n" not in str(refused.value)


def test_every_kind_says_what_it_takes() -> None:
    assert all(takes and what for takes, what in KINDS.values())
