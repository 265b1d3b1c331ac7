"""The forms of what identifies a machine, a person or their files: addresses, serial numbers, paths, names.

Each form is recognised by itself, wherever it stands in a sentence. What only looks like one is left alone:
versions with four numbers, times of day, names of C++ functions, figures.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from typing import Final, NamedTuple
from urllib.parse import urlsplit


class Found(NamedTuple):
    """A part of a text that identifies: where it is, of what kind, and what it names."""

    start: int
    end: int
    kind: str
    name: str


#: No letter or digit before and after: an underscore ends a word too, as in `vg_hostname`.
_B: Final = r"(?<![^\W_])"
_E: Final = r"(?![^\W_])"
_HEX: Final = "[0-9A-Fa-f]"
#: Where the system describes itself: the same on every machine, but for what stands under cgroup.
NOBODYS: Final = (
    r"(?:proc|sys|etc|usr|lib|lib64|bin|sbin)(?:/|\b)(?!(?:[^\s'\"`]{0,200}/)?(?:home|Users)/)"
    r"|\.dockerenv\b|run/\.containerenv\b|dev/[a-z0-9]+(?![\w/-])"
)
PATH_END: Final = r"[^\s'\"`,;:()\[\]<>|]"
_DOMAINS: Final = "com|org|net|edu|gov|local|lan|internal|intranet|corp|home|localdomain|arpa"
#: Sites that latlab and programs refer to: they name a source, not who measured.
_PUBLIC: Final = re.compile(r"(?:[\w-]+\.)*(?:github\.com|kernel\.org|python\.org|json-schema\.org|w3\.org)")

_FORMS: Final = {
    "url": r"(?<![^\W_])[A-Za-z][A-Za-z0-9+.-]{0,30}://[^\s'\"<>`]*[^\s'\"<>`.,;:!?)\]}]",
    "quoted": rf"(?<=['\"`])/(?!{NOBODYS})[^'\"`]+(?=['\"`])",
    "remote": rf"(?<![\w.-])[\w.-]*\w:/(?!/){PATH_END}+",
    "path": (
        rf"/sys/fs/cgroup/{PATH_END}+"  # holds user ids and names of containers
        rf"|(?<![\w.:/)~])/(?!{NOBODYS}){PATH_END}+"
        rf"|(?<![\w/.])(?:\.{{1,2}}/)+{PATH_END}+"
        rf"|(?<![\w/])~[\w.-]*/{PATH_END}*"
        r"|(?<!\w)[A-Za-z]:\\[^\s'\"`]+|\\\\[\w.-]+\\[^\s'\"`]*"
    ),
    "mail": (rf"(?<![\w.+-])[\w.+-]+@(?:[A-Za-z0-9-]+\.)+[A-Za-z]{{2,}}{_E}|(?<=\()[\w.+-]+@[\w.-]+(?=\))"),
    "uuid": rf"{_B}{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}{_E}",
    "by_id": (
        rf"{_B}(?:ata|scsi|nvme|usb|virtio|mmc|sata|ieee1394|google|wwn|lvm-pv-uuid|(?:dm|md)-(?:name|uuid))"
        rf"-[\w.:+-]*\w"
    ),
    "named_id": rf"{_B}(?:eui|naa|t10|nvme|iqn|uuid)\.(?=[\w.:-]{{0,200}}\d)[\w.:-]{{5,}}\w",
    "serial": (
        rf"(?i:{_B}(?:serial(?: ?(?:number|no\.?))?|s/n|wwid|wwn|nguid|eui(?:-?64)?|machine[- _]id))"
        r"(?:\s*[:=#]\s*|\s+is\s+|\s+)(?P<said>[A-Za-z0-9](?:[\w.:-]*\w)?)"
    ),
    "dashed": rf"(?<![\w-])(?:{_HEX}{{2}}-){{5,19}}{_HEX}{{2}}(?![\w-])",
    "dotted": rf"{_B}(?<!\.){_HEX}{{4}}\.{_HEX}{{4}}\.{_HEX}{{4}}{_E}(?!\.\w)",
    "colons": (
        rf"(?<![^\W_])(?<!\.)(?<!::)(?=[0-9A-Fa-f]{{0,4}}:[0-9A-Fa-f]{{0,4}}:){_HEX}*:[0-9A-Fa-f:]*"
        rf"(?:(?:\.\d{{1,3}}){{3}})?(?:%[\w.~-]*\w)?{_E}"
    ),
    "ip4": rf"{_B}(?<!\d\.)\d{{1,3}}(?:\.\d{{1,3}}){{3}}{_E}(?!\.\d)",
    "ec2": rf"{_B}ip-\d{{1,3}}(?:-\d{{1,3}}){{3}}(?:\.[\w-]+)*{_E}",
    "wwid": rf"{_B}0x[56]{_HEX}{{15}}(?:{_HEX}{{16}})?{_E}",
    "bare": rf"{_B}(?:enx)?(?:{_HEX}{{64}}|{_HEX}{{32}}|{_HEX}{{16}}|{_HEX}{{12}}){_E}",
    "domain": (
        rf"{_B}(?<![.@-])(?:[A-Za-z0-9][\w-]*\.){{2,}}(?:{_DOMAINS})(?![\w-]|\.\w)"
        rf"|{_B}(?<![.@-])[A-Za-z0-9][\w-]*\.(?:com|org|edu|gov)(?![\w-]|\.\w)"
    ),
    "user_id": r"(?<![\w-])(?:user(?:-runtime-dir)?[-@]\d+\.(?:slice|service)|[ug]id[ =:]+\d+)",
}
FORMS: Final = "|".join(f"(?P<{name}>{pattern})" for name, pattern in _FORMS.items())

_VERSION_BEFORE: Final = re.compile(
    r"(?:version|release|firmware|revision|rev|driver|kernel|linux|bios|microcode|build)[\s:=-]*\Z",
    re.IGNORECASE,
)
_VERSION_KEY: Final = re.compile(r"(?:^|_)(?:version|release|firmware|revision|microcode|build)(?:_|$)")
_ONLY_VERSION: Final = re.compile(r"\d+(?:\.\d+)+(?:[-+~]\S*)?")
_DISTRIBUTION_AFTER: Final = re.compile(r"[-+~][A-Za-z]")
_PART: Final = re.compile(r"-part\d+\Z|-\d:\d\Z")
_FEWEST_DIGITS: Final = 5
"""Hexadecimal digits of the shortest IPv6 address that names a machine: `fe80::1`."""
_LONGEST_ADDRESS: Final = 64


def found(match: re.Match[str], key: str = "") -> Iterator[Found]:
    """What of a match of `FORMS` identifies; nothing if it only looks so.

    Args:
        match: Of a pattern that has the groups of `FORMS`.
        key: Of the field in which the text stands.
    """
    form = match.lastgroup or ""
    if form in _LOOKED_INTO:
        yield from _LOOKED_INTO[form](match)
    elif form != "ip4" or _is_address(match, key):
        yield Found(match.start(), match.end(), _KIND_OF_FORM[form], match.group())


def host_of(url: str) -> str:
    """The host in a URL; empty where there is none."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def normal_address(text: str) -> str | None:
    """An IP address in its one normal form; None for what is none, and for one that every machine has."""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return None if address.is_loopback or address.is_unspecified else str(address)


def _url(match: re.Match[str]) -> Iterator[Found]:
    if not _PUBLIC.fullmatch(host_of(match.group())):
        yield Found(match.start(), match.end(), "url", match.group())


def _path(match: re.Match[str]) -> Iterator[Found]:
    """Without the end of a sentence."""
    path = match.group().rstrip(".!?")
    yield Found(match.start(), match.start() + len(path), "path", path)


def _mail(match: re.Match[str]) -> Iterator[Found]:
    user, _, host = match.group().partition("@")
    at = match.start() + len(user)
    yield Found(match.start(), at, "user", user)
    yield Found(at + 1, match.end(), "host", host)


def _bare(match: re.Match[str]) -> Iterator[Found]:
    """A figure has no letters, but for the one of an exponent."""
    text = match.group()
    if sum(letter.isalpha() for letter in text) > 1 and any(letter.isdigit() for letter in text):
        yield Found(match.start(), match.end(), "serial", text)


def _dotted(match: re.Match[str]) -> Iterator[Found]:
    if any(letter.isalpha() for letter in match.group()):
        yield Found(match.start(), match.end(), "address", match.group().replace(".", ""))


def _by_id(match: re.Match[str]) -> Iterator[Found]:
    """`ata-Model_SERIAL-part1`: the model stays. Names of volumes and world-wide names go whole."""
    text, start = match.group(), match.start()
    if text.startswith(("wwn-", "lvm-", "dm-", "md-")):
        yield Found(start, match.end(), "volume" if text[2:].startswith("-name-") else "serial", text)
        return
    body = re.sub(r"_\d{1,2}\Z", "", _PART.sub("", text))
    at = max(body.rfind("_"), body.find("-")) + 1
    serial = body[at:]
    if len(serial) >= 6 and any(letter.isdigit() for letter in serial):  # noqa: PLR2004 - shorter ones are words
        yield Found(start + at, start + len(body), "serial", serial)


def _serial(match: re.Match[str]) -> Iterator[Found]:
    said = match.group("said")
    has_digit = any(letter.isdigit() for letter in said)
    is_marked = not re.fullmatch(r"\w+\s+", match.string[match.start() : match.start("said")])
    is_mixed = any(letter.isalpha() for letter in said) and len(said) >= 6  # noqa: PLR2004 - `serial 128k` is a size
    if has_digit and (is_mixed or (is_marked and len(said) >= 4)):  # noqa: PLR2004 - shorter ones identify nothing
        yield Found(match.start("said"), match.end("said"), "serial", said)


def _with_colons(match: re.Match[str]) -> Iterator[Found]:
    """IPv6 addresses and hardware addresses, also between words that end with a colon."""
    text, start = match.group(), match.start()
    groups, _, zone = text.partition("%")
    if re.fullmatch(rf"(?:{_HEX}{{2}}:){{5,}}{_HEX}{{2}}:?", groups):
        kept = groups.rstrip(":")
        yield Found(start, start + len(kept), "address", kept.lower())
        return
    if len(groups) > _LONGEST_ADDRESS:
        return
    edges = [0, *(at + 1 for at, letter in enumerate(groups) if letter == ":")]
    ends = [*(at for at, letter in enumerate(groups) if letter == ":"), len(groups)]
    spans = [
        (low, high) for low in {0, *edges} for high in {*ends, *(end + 1 for end in ends[:-1])} if low < high
    ]
    for low, high in sorted(spans, key=lambda span: (span[0] - span[1], span[0])):
        part = groups[low:high]
        if not 2 <= part.count(":") <= 8 or part.startswith(":") != part.startswith("::"):  # noqa: PLR2004 - the fewest
            continue
        name = normal_address(part)
        if name is None or _names_a_function(part):
            continue
        end = len(text) if zone and high == len(groups) else high
        yield Found(start + low, start + end, "address", name)
        return


def _names_a_function(part: str) -> bool:
    """C++ writes `dead::beef`, Python `[::2]`."""
    digits = part.replace(":", "")
    if "." in digits:
        return False
    is_word = not any(letter.isdigit() for letter in digits) and part.count(":") == 2  # noqa: PLR2004 - `a::b`
    return len(digits) < _FEWEST_DIGITS or is_word


def _is_address(match: re.Match[str], key: str) -> bool:
    """Four numbers are a version after such a word, as all of such a field, before a distribution's name."""
    text, name = match.string, normal_address(match.group())
    if name is None or match.group().startswith("0."):
        return False
    return not (
        (_VERSION_KEY.search(key) and _ONLY_VERSION.fullmatch(text))
        or _VERSION_BEFORE.search(text[max(match.start() - 24, 0) : match.start()])
        or _DISTRIBUTION_AFTER.match(text, match.end())
    )


_LOOKED_INTO: Final = {
    "url": _url,
    "quoted": _path,
    "remote": _path,
    "path": _path,
    "mail": _mail,
    "by_id": _by_id,
    "serial": _serial,
    "colons": _with_colons,
    "bare": _bare,
    "dotted": _dotted,
}
_KIND_OF_FORM: Final = {
    **dict.fromkeys(("dashed", "ip4"), "address"),
    **dict.fromkeys(("ec2", "domain"), "host"),
    **dict.fromkeys(("uuid", "named_id", "wwid"), "serial"),
    "user_id": "user",
}
