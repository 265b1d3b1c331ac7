from __future__ import annotations

import io
import math
import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from latlab import units
from latlab.errors import UserError
from latlab.text import ascii_only


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("4KiB", 4096),
        ("4 kib", 4096),
        ("4k", 4096),
        ("4kB", 4000),
        ("1GB", 10**9),
        ("1 GiB", 2**30),
        ("1.5 MiB", 1572864),
        (".5MiB", 524288),
        ("0", 0),
        ("1,000,000", 10**6),
        ("1e6", 10**6),
        ("7 bytes", 7),
        ("  2T ", 2**41),
        ("1.001kB", 1001),
        ("0.7KiB", 717),
        (4096, 4096),
    ],
)
def test_sizes_are_read_as_people_write_them(text: str | int, expected: int) -> None:
    assert units.parse_size(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("30s", 30),
        ("2min", 120),
        ("1.5 h", 5400),
        ("250ms", 0.25),
        ("90", 90),
        ("10 µs", 1e-5),
        (2.5, 2.5),
        ("1m", 60),
    ],
)
def test_times_are_read_as_people_write_them(text: str | float, expected: float) -> None:
    assert units.parse_seconds(text) == pytest.approx(expected)


def test_counts_and_cpu_lists_are_read() -> None:
    assert units.parse_count("10k") == 10_000
    assert units.parse_count("1e6") == 10**6
    assert units.parse_cpus("0,2-3, 2") == (0, 2, 3)


@pytest.mark.parametrize(
    "parse", [units.parse_size, units.parse_seconds, units.parse_count, units.parse_cpus, units.parse_share]
)
@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        ".",
        "nan",
        "inf",
        "-3",
        "-3s",
        "4XiB",
        "1e400",
        "9" * 60,
        "1" * 1000,
        "٣",
        "0x10",
        "1;2",
        "\x1b[31m9",
        "3\n4",
    ],
)
def test_what_is_no_quantity_is_named_in_one_line(parse: object, text: str) -> None:
    with pytest.raises(UserError) as error:
        parse(text)  # type: ignore[operator]
    message = str(error.value)
    assert message.isprintable()
    assert len(message) < 200
    assert error.value.exit_code == 2
    if text.strip().isascii() and text.isprintable() and len(text) < 50:
        assert f"'{text}'" in message


def test_a_share_is_a_percentage_above_nothing_and_at_most_all() -> None:
    assert units.parse_share("5%") == pytest.approx(0.05)
    assert units.parse_share("0.5 %") == pytest.approx(0.005)
    for text in ("0%", "101%", "0.05", "5 s"):
        with pytest.raises(UserError, match=f"'{text}'"):
            units.parse_share(text)


@pytest.mark.parametrize("text", ["0", "0s", "1e9s", "8 days"])
def test_a_time_that_nobody_waits_for_is_refused(text: str) -> None:
    with pytest.raises(UserError):
        units.parse_seconds(text)


def test_half_a_byte_and_more_than_a_computer_has_are_refused() -> None:
    for text in ("1.5", "0.5B", "9e18k"):
        with pytest.raises(UserError):
            units.parse_size(text)


@pytest.mark.parametrize(
    ("ns", "expected"),
    [
        (None, "–"),
        (0, "0 ns"),
        (0.00106, "1.06 ps"),
        (0.42, "420 ps"),
        (0.9996, "1.00 ns"),
        (1.06, "1.06 ns"),
        (9.996, "10.0 ns"),
        (113.4, "113 ns"),
        (999.6, "1.00 µs"),
        (2344, "2.34 µs"),
        (1.4e6, "1.40 ms"),
        (1e9, "1.00 s"),
        (3.6e12, "3600 s"),
    ],
)
def test_times_are_printed_with_three_digits(ns: float | None, expected: str) -> None:
    assert units.format_ns(ns) == expected


@pytest.mark.parametrize(
    ("size", "binary", "decimal"),
    [
        (None, "–", "–"),
        (0, "0 B", "0 B"),
        (1000, "1000 B", "1 kB"),
        (1023, "1023 B", "1.02 kB"),
        (49152, "48 KiB", "49.2 kB"),
        (1536, "1.5 KiB", "1.54 kB"),
        (2**20 - 1, "1 MiB", "1.05 MB"),
        (10**9, "954 MiB", "1 GB"),
        (2**50, "1 PiB", "1.13 PB"),
    ],
)
def test_sizes_are_printed_binary_unless_decimal_is_asked_for(
    size: int | None, binary: str, decimal: str
) -> None:
    assert units.format_bytes(size) == binary
    assert units.format_bytes(size, decimal=True) == decimal


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        *((10**9, "1 GB"), (10**10, "10 GB"), (2**20, "1 MiB"), (1000, "1000 B"), (12345, "12.1 KiB")),
        (2**63 - 1, "8192 PiB"),
    ],
)
def test_a_size_has_the_prefix_with_which_it_is_exact(size: int, expected: str) -> None:
    assert units.format_bytes_as_asked(size) == expected


@pytest.mark.parametrize(
    ("size", "expected"),
    [(1600, "1.56 KiB"), (1472, "1.44 KiB"), (1000, "1000 B"), (10_000, "10 kB"), (10**9, "1 GB")],
)
def test_sizes_of_points_are_decimal_in_whole_kilobytes_only(size: int, expected: str) -> None:
    assert units.format_bytes_of_point(size) == expected


@pytest.mark.parametrize(
    ("rate", "expected"),
    [
        (None, "–"),
        (0, "0 B/s"),
        (1.5e3, "1.50 kB/s"),
        (1e6, "1.00 MB/s"),
        (39.1e9, "39.1 GB/s"),
        (468e9, "468 GB/s"),
        (999.6e9, "1.00 TB/s"),
    ],
)
def test_rates_are_decimal(rate: float | None, expected: str) -> None:
    assert units.format_rate(rate) == expected


@pytest.mark.parametrize(
    ("count", "expected"),
    [(0, "0"), (1600.2, "1,600"), (999_999.7, "1 million"), (80e6, "80 million"), (1.5e9, "1.5 billion")],
)
def test_counts_are_exact_below_a_million(count: float, expected: str) -> None:
    assert units.format_count(count) == expected


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0.44, "0.4 s"),
        (9.96, "10 s"),
        (31.2, "31 s"),
        (90, "1 min 30 s"),
        (120, "2 min"),
        (7199, "2 h"),
        (7500, "2 h 5 min"),
    ],
)
def test_a_wait_is_printed_as_people_say_it(seconds: float, expected: str) -> None:
    assert units.format_seconds(seconds) == expected


@pytest.mark.parametrize(
    ("share", "expected"), [(0, "0 %"), (0.012, "1.2 %"), (0.61, "61 %"), (1, "100 %"), (0.0001, "0.010 %")]
)
def test_a_share_is_printed_in_percent(share: float, expected: str) -> None:
    assert units.format_percent(share) == expected


def test_what_is_not_finite_is_printed_as_nothing() -> None:
    for bad in (float("nan"), float("inf")):
        for shown in (
            units.format_ns,
            units.format_rate,
            units.format_bytes,
            units.format_count,
            units.format_percent,
        ):
            assert shown(bad) == "–"


@given(st.floats(min_value=1e-3, max_value=1e15))
def test_a_printed_time_is_the_time_to_three_digits(ns: float) -> None:
    number, unit = units.format_ns(ns).split(" ")
    scale = {"ps": 1e-3, "ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9}[unit]
    assert float(number) * scale == pytest.approx(ns, rel=0.00501)
    if unit != "s":
        assert re.fullmatch(r"\d\.\d\d|\d\d\.\d|\d\d\d", number)


@given(st.integers(min_value=0, max_value=2**60))
def test_a_printed_size_is_read_back_to_three_digits(size: int) -> None:
    assert units.parse_size(units.format_bytes(size)) == pytest.approx(size, rel=0.00501)
    assert units.parse_size(units.format_bytes(size, decimal=True)) == pytest.approx(size, rel=0.00501)


@given(st.text(max_size=30))
def test_any_text_is_a_quantity_or_a_clear_refusal(text: str) -> None:
    for parse in (units.parse_size, units.parse_seconds, units.parse_count, units.parse_cpus):
        try:
            found = parse(text)
        except UserError as error:
            assert str(error).isprintable()  # noqa: PT017 - either outcome is right
        else:
            quantities = found if isinstance(found, tuple) else (found,)
            assert quantities
            assert all(0 <= each < math.inf for each in quantities)


def test_a_terminal_that_knows_ascii_only_gets_ascii() -> None:
    assert ascii_only(units.format_ns(2344)) == "2.34 us"
    assert ascii_only("×5 – ±1 · ≥ 2 … →") == "x5 - +-1 - >= 2 ... ->"
    assert ascii_only("日") == "?"
    assert ascii_only(units.format_ns(None)) == "-"


@pytest.mark.parametrize(
    ("value", "two", "three"),
    [
        (0.7, "0.7", "0.7"),
        (2.04, "2", "2.04"),
        (99.49, "99", "99.5"),
        (99.7, "100", "99.7"),
        (524.0, "524", "524"),
        (999.6, "1,000", "1,000"),
        (-1234.5, "-1,234", "-1,234"),
    ],
)
def test_digits_have_no_power_of_ten(value: float, two: str, three: str) -> None:
    assert units.format_digits(value, 2) == two
    assert units.format_digits(value, 3) == three


def test_what_fits_is_decided_by_the_streams_encoding() -> None:
    from latlab.text import can_encode, fitting  # noqa: PLC0415

    plain = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    rich = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    latin = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    assert fitting("2 µs", rich) == "2 µs"
    assert fitting("2 µs", plain) == "2 us"
    assert fitting("2 µs", latin) == "2 µs"
    assert not can_encode("▓", latin)


@pytest.mark.parametrize(
    "say",
    [
        units.format_ns,
        units.format_seconds,
        units.format_bytes,
        units.format_count,
        units.format_percent,
        lambda value: units.format_digits(value, 2),
        lambda value: units.format_value(value, "bytes_per_s"),
    ],
)
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 10**400, -(10**400)])
def test_what_is_no_figure_is_a_dash(say: Callable[[float], str], value: float) -> None:
    assert say(value) == "–"


def test_a_range_names_its_unit_once_where_both_ends_share_it() -> None:
    assert units.format_span(1.06, 1.07) == "1.06–1.07 ns"
    assert units.format_span(900.0, 1100.0) == "900 ns – 1.10 µs"
    assert units.format_span(1.5e9, 2e9, units.format_rate) == "1.50–2.00 GB/s"
    assert units.format_span(1, 2, str) == "1–2"


def test_a_figure_is_stated_with_its_range_or_as_measured_once() -> None:
    assert units.format_stated(1.06, (1.05, 1.07)) == "1.06 ns (1.05–1.07 ns)"
    assert units.format_stated(1.06, None) == "1.06 ns (measured once)"
    assert units.format_stated(1.06, None, why_none="once per CPU") == "1.06 ns (once per CPU)"
    assert units.format_stated(None, None) == ""


def test_a_change_is_a_percentage_then_so_many_times_then_more_than_anybody_counts() -> None:
    assert [units.format_change(each) for each in (0.12, 2.7, 1e12)] == [
        "12 %",
        "3.7 times",
        "over 1,000 times",
    ]
