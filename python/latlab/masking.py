"""Passwords, tokens and keys on a command line, masked before it is shown or written.

An option keeps its name: `--password=***`. What is masked is what an option, an assignment, a header or a URL
says to be a secret, what has the form of a well-known token, and the value after options of programs that are
known to take one there (`mysql -p`). A file with a secret (`--password-file F`) is none.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import PurePath
from typing import Final

MASK: Final = "***"
_SECRETS: Final = (
    *("password", "passwd", "passphrase", "passcode", "pass", "pwd", "secret", "token", "apikey", "bearer"),
    *("credential", "credentials"),
)
_NAMES_A_SECRET: Final = re.compile(
    rf"(?:.*[^a-z0-9])?(?:\w*(?:password|passwd|passphrase|secret|apikey|token)|{'|'.join(_SECRETS)}"
    r"|(?:api|access|account|auth|client|encryption|license|secret|service|shared|signing)[_.-]?key)",
    re.IGNORECASE,
)
#: `--no-password` takes no value, `--max-token` counts.
_NAMES_NONE: Final = re.compile(
    r"-*(?:no|without|disable|skip|ask|prompt|max|min|num|eos|bos|pad|unk)[_.-]", re.IGNORECASE
)
#: `ffmpeg -pass 2`
_NUMBER: Final = re.compile(r"\d{1,2}")
_SHORTEST_WORD: Final = 16
_LEAST_ENTROPY: Final = 3.0

_OPTION: Final = re.compile(r"--?[A-Za-z][\w.-]*")
_NAME: Final = r"(?<![\w.-])-{0,2}[A-Za-z_][\w.-]*"
_ASSIGNED: Final = re.compile(
    rf"(?P<name>{_NAME})(?P<sign>[\"']?(?:=|:\s*(?=[^\s/])))(?P<value>\"[^\"]*\"|'[^']*'|[^\s&;,\"'}}]+)"
)
_HEADER: Final = re.compile(
    r"(?P<name>\b(?:proxy-)?authorization[\"']?\s*[:=]\s*[\"']?(?:(?:bearer|basic|token|digest|negotiate|apikey)\s+)?"
    r"|\bbearer\s+|\b(?:set-)?cookie:\s*)(?P<value>[^\s\"'][^\"']*)",
    re.IGNORECASE,
)
_USER_IN_URL: Final = re.compile(
    r"(?P<scheme>\b[A-Za-z][\w+.-]{0,30}://)(?P<user>[^\s:/?#@]*)(?P<word>:[^\s/?#]*)?@"
)
_USER_BEFORE_HOST: Final = re.compile(
    r"(?<![^\s:/@=])(?P<user>[^\s:/@=]+):(?P<word>[^\s/@]{1,256})(?P<host>@(?!sha\d+:)[\w.-]+(?::\d+)?(?:/\S*)?)"
)
_QUERY: Final = re.compile(
    r"(?P<name>[?&;](?:[\w.-]*[_.-])?(?:token|key|apikey|secret|password|passwd|pwd|pass|sig|signature|auth|session"
    r"|credential)=)[^&#\s\"']+",
    re.IGNORECASE,
)
#: AWS, GitHub, GitLab, Slack, those with `sk-`, Google, npm, Hugging Face, Docker, PyPI, JSON Web Tokens.
_TOKENS: Final = re.compile(
    r"(?<![A-Za-z0-9])(?:(?:AKIA|ASIA)[0-9A-Z]{16}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}"
    r"|xox[abeprs]-[\w-]{10,}|sk-[\w-]{20,}|AIza[\w-]{30,}|npm_\w{30,}|hf_\w{30,}|dckr_pat_[\w-]{20,}|pypi-[\w-]{30,}"
    r"|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*)(?![A-Za-z0-9])"
)
_WORDS_OF_A_SHELL: Final = re.compile(r"\s+|[;|&]+|(?:[^\s'\";|&]|'[^']*'|\"[^\"]*\")+|['\"]")
_QUOTED: Final = re.compile(r"(?P<quote>['\"])(?P<inside>.*)(?P=quote)", re.DOTALL)
_DEEPEST: Final = 8

_MYSQL: Final = (
    "mysql",
    "mysqldump",
    "mysqladmin",
    "mysqlimport",
    "mysqlshow",
    "mysqlcheck",
    "mariadb",
    "mariadb-dump",
)
#: Options whose value, attached to them, is a password.
_ATTACHED: Final = {
    **dict.fromkeys(_MYSQL, ("-p",)),
    **dict.fromkeys(("7z", "7za", "7zr", "sshpass"), ("-p",)),
    "sqlcmd": ("-P",),
}
#: Options whose value, the next word, is a password.
_NEXT: Final = {
    "sshpass": ("-p",),
    "redis-cli": ("-a",),
    **dict.fromkeys(("ldapsearch", "ldapadd", "ldapmodify", "ldapdelete", "ldapwhoami"), ("-w",)),
    **dict.fromkeys(("mongo", "mongosh", "mongodump", "mongorestore"), ("-p",)),
    **dict.fromkeys(("zip", "unzip", "sqlcmd", "bcp", "mosquitto_pub", "mosquitto_sub"), ("-P",)),
}
#: Programs whose subcommand `login` takes a password with `-p`.
_LOGINS: Final = frozenset({"docker", "podman", "buildah", "skopeo", "nerdctl", "helm", "oc", "az"})
#: Options whose value is `user:password`.
_USER_AND_WORD: Final = {
    "curl": ("-u", "--user", "-U", "--proxy-user"),
    **dict.fromkeys(("http", "https", "xh"), ("-a", "--auth")),
}
_SMB: Final = frozenset({"smbclient", "rpcclient"})
_ENDS_A_COMMAND: Final = frozenset({"|", "||", "&", "&&", ";"})


def masked(words: Sequence[str]) -> tuple[str, ...]:
    """A command line with `***` in the place of what looks like a secret."""
    return _masked(words, 0)


def _masked(words: Sequence[str], depth: int) -> tuple[str, ...]:
    out: list[str] = []
    programs: set[str] = set()
    logs_in = False
    before = ""
    for word in words:
        if before in _ENDS_A_COMMAND:
            programs, logs_in = set(), False
        hidden = _after_option(word, before, programs, logs_in=logs_in)
        out.append(_inside(word, depth) if hidden is None else hidden)
        programs.add(PurePath(word).name)
        logs_in = logs_in or (word == "login" and bool(programs & _LOGINS))
        before = word
    return tuple(out)


def masked_url(url: str | None) -> str | None:
    """A URL without passwords and tokens."""
    return None if url is None else _by_form(url)


def _after_option(word: str, before: str, programs: set[str], *, logs_in: bool) -> str | None:
    """A word that an option makes a secret, or that holds one behind an option; None for others."""
    if before and not word.startswith("-") and _is_secret_after(before, word):
        return MASK
    for program in tuple(programs):
        if before in _NEXT.get(program, ()):
            # What follows may be another program, with options of its own.
            programs.discard(program)
            return MASK
        hidden = _of_program(program, word, before)
        if hidden is not None:
            return hidden
    return MASK if logs_in and before == "-p" else None


def _of_program(program: str, word: str, before: str) -> str | None:
    """A word that holds a password as this program takes it."""
    for option in _ATTACHED.get(program, ()):
        if word.startswith(option) and word != option:
            return option + MASK
    for option in _USER_AND_WORD.get(program, ()):
        if before == option:
            return _after(":", word)
        if word.startswith(option) and not option.startswith("--"):
            return _after(":", word)
    if program in _SMB and "-U" in {before, word[:2]}:
        return _after("%", word)
    if program == "openssl" and word.startswith("pass:"):
        return _after(":", word)
    return None


def _inside(word: str, depth: int) -> str:
    """What says so itself; in a word with blanks, which may be a command line for a shell, options too."""
    word = _by_form(word)
    if not re.search(r"\s", word) or depth > _DEEPEST:
        return word
    if quoted := _QUOTED.fullmatch(word):
        return f"{quoted['quote']}{_inside(quoted['inside'], depth + 1)}{quoted['quote']}"
    parts = _WORDS_OF_A_SHELL.findall(word)
    hidden = iter(_masked([part for part in parts if not part.isspace()], depth + 1))
    return "".join(part if part.isspace() else next(hidden) for part in parts)


def _is_secret_after(before: str, word: str) -> bool:
    """Whether the word before says that this one is a secret."""
    if _OPTION.fullmatch(before):
        return _names_a_secret(before) and not _NUMBER.fullmatch(word)
    return _names_a_secret(before.rstrip(":=")) and _is_random(word)


def _names_a_secret(name: str) -> bool:
    return bool(_NAMES_A_SECRET.fullmatch(name.strip("-"))) and not _NAMES_NONE.match(name)


def _is_random(word: str) -> bool:
    """Long, of digits and letters, and with as many different ones as chance gives."""
    if (
        len(word) < _SHORTEST_WORD
        or not re.fullmatch(r"[\w+/=.~-]+", word)
        or word.startswith(("/", ".", "-"))
    ):
        return False
    if not (re.search(r"\d", word) and re.search(r"[A-Za-z]", word)):
        return False
    shares = [count / len(word) for count in Counter(word).values()]
    return -sum(share * math.log2(share) for share in shares) >= _LEAST_ENTROPY


def _by_form(text: str) -> str:
    """What says by itself that it is a secret, wherever it stands."""
    text = _HEADER.sub(rf"\g<name>{MASK}", text)
    text = _USER_IN_URL.sub(_without_password, text)
    text = _USER_BEFORE_HOST.sub(rf"\g<user>:{MASK}\g<host>", text) if "://" not in text else text
    text = _QUERY.sub(rf"\g<name>{MASK}", text)
    text = _ASSIGNED.sub(_without_value, text)
    return _TOKENS.sub(MASK, text)


def _without_password(match: re.Match[str]) -> str:
    if match["word"] is not None:
        return f"{match['scheme']}{match['user']}:{MASK}@"
    # Over HTTP a name without a password is a token; over SSH it is `git`.
    return f"{match['scheme']}{MASK}@" if match["scheme"].endswith(("http://", "https://")) else match.group()


def _without_value(match: re.Match[str]) -> str:
    if not _names_a_secret(match["name"]):
        return match.group()
    quote = match["value"][:1] if match["value"][:1] in {'"', "'"} else ""
    return f"{match['name']}{match['sign']}{quote}{MASK}{quote}"


def _after(sign: str, word: str) -> str:
    user, found, _ = word.partition(sign)
    return user + found + (MASK if found else "")
