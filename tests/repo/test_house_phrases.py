"""What a person reads has the words of docs/reference/glossary.md, and no phrase of the house."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from tests.pages import ROOT


class House(NamedTuple):
    """A phrase of the house: its pattern, what to write instead, and a sentence that has it."""

    pattern: str
    instead: str
    planted: str


class Text(NamedTuple):
    """What a person reads, and where it is written."""

    path: Path
    line: int
    text: str


_PASSES: Final = r"repeats|rounds|runs|looks|measurements"
_VARIANTS: Final = r"native|plain|Python|published|each|one|of|by|all|three|two"

PHRASES: Final = (
    # Statistics
    House(
        rf"(?:what|than|beyond|while)(?: \w+){{0,2}} (?:{_PASSES}) (?:differ|do)\b",
        "within run-to-run variation",
        "Not beyond what the repeats differ",
    ),
    House(
        r"\b(?:a|one|each|every|two|first|second|last|between|more than) looks?\b(?!-)",
        "pass (of a measurement), scan (of /proc), clock read",
        "a file that was closed between two looks",
    ),
    House(r"\blooks (?:are|at /proc|in between|saw)\b", "scans of /proc", "looks are 5 ms apart"),
    House(r"\bat most this sight|\blevels? of sight\b", "tracing level", "raise the level of sight"),
    House(
        r"\b[Aa] normal (?:puts|would|has|predicts|makes)\b|\bbeside a normal\b(?! \w+ion)",
        "a normal distribution predicts",
        "What a normal puts beyond six deviations",
    ),
    House(r"\b[Nn]o tail index\b", "no power law fits", "No tail index: it would be 0.83"),
    House(
        r"\bbut lone ones\b|\blone points?\b",
        "no consistent difference across N points",
        "at all 9 points but lone ones",
    ),
    House(
        r"\bmoved while (?:it was )?measured\b|\bmoved: a second\b",
        "unstable: start and end of the run disagree",
        "RAM moved while measured",
    ),
    House(r"\bfore(?:tell|told)\b", "predict, predicted", "foretold from one transfer"),
    House(r"\b[Rr]eckon(?:s|ed)?\b", "calculate", "reckoned, not measured"),
    House(r"\bput together from\b", "calculated from, combined from", "put together from runs"),
    House(
        r"\b(?:few|its|their|of|wrong) kin\b", "similar points", "too few kin tell how far rounds lie apart"
    ),
    House(
        r"\b(?:holds?|held) nine of ten\b",
        "contains nine of ten",
        "ranges hold nine of ten jobs",
    ),
    House(r"\bsays? nothing of how\b", "gives no range", "a single round says nothing of how rounds vary"),
    # What a machine does
    House(
        r"\b(?:takes?|taken|took) (?:some )?pages (?:of \w+ (?:\w+ )?)?back\b",
        "the kernel reclaims pages",
        "the kernel takes pages back",
    ),
    House(
        r"\b(?:is|are|was|were|and) put out of (?:it|the (?:page )?cache)\b",
        "evicted",
        "and put out of the cache",
    ),
    House(r"\bspoilt\b", "overwritten with wrong values", "words are spoilt before each block"),
    House(r"\bround and round\b", "repeatedly", "front to back, round and round"),
    House(
        r"\bsomebody (?:set|up|else)\b", "name the subject: a program, a process", "a timer that somebody set"
    ),
    House(
        r"\bthreads? (?:that )?(?:(?:can|cannot|is|are|not|be) )*kept on (?:a|one|its) CPU\b",
        "pinned to a CPU",
        "threads that can be kept on a CPU",
    ),
    House(r"[\d}] us\b(?! ?/)", "µs", "50 us"),
    House(
        r"\b(?:other|to|what the) neighbours\b|\bneighbours (?:are invisible|that you cannot see|do\b)",
        "other virtual machines on this host",
        "its neighbours are invisible",
    ),
    House(
        r"\bCPU (?:was |is )?taken away\b|\btime is taken away\b|\b(?:is|was) (?:the|a) CPU taken away\b",
        "interrupted",
        "how often the CPU was taken away",
    ),
    House(
        r"\bkept from (?:its|their|his|her) (?:work|CPUs?)\b|\bkept this CPU from\b",
        "interrupted",
        "CPU 0 was kept from its work",
    ),
    House(r"\bt(?:ee|oo)th\b", "expected timer ticks", "966 of 966 teeth"),
    House(r"\bcombs?\b", "periodic interference; clock steps", "by combs alone"),
    House(r"\bcrews?\b", "worker threads", "a crew needs a real clock"),
    House(
        r"\btook? what they take\b|\btakes? what (?:it|they) takes?\b",
        "at this machine's normal cost",
        "page faults took what they take here",
    ),
    House(
        r"\b(?:gave|gives?|giving) up (?:its|their|the) CPU\b",
        "blocked",
        "its threads gave up their CPU 119 times",
    ),
    House(r"\bwhatever for\b", "for any reason, or leave it out", "to wait, whatever for"),
    House(r"\bstanding[- ]causes?\b(?!\.)", "periodic interference", "what the standing causes do"),
    House(
        r"\bCPUs? (?:was|were|is) heard\b|\b(?:was|is|be|are|were) heard\b|\bnothing to hear\b|\bhas heard\b",
        "found, detected, recorded",
        "What was heard on a CPU",
    ),
    House(
        r"\b(?:who|somebody|nobody|whoever) listen(?:s|ed)\b",
        "latlab records; without a listener; no server listens",
        "who listens gets their times",
    ),
    House(
        r"\bhas moved from\b|\bmoved a \d",
        "slowed down from",
        "a 4 MiB working set has moved from 6 to 134 ns",
    ),
    House(
        r"\bkeeps? (?:it|them|a thread|a program) from (?:its|their) work\b",
        "interrupts",
        "say what keeps it from its work",
    ),
    House(
        r"\b[Ll]isten(?:s|ing)? (?:to|on) (?:a|the|one|each|every) CPUs?\b|\blistening (?:process|thread)\b",
        "measures what interrupts a CPU",
        "Listen to a CPU",
    ),
    House(r"\bput the runs together\b", "combine the runs", "Run it N times and put the runs together"),
    # latlab explain
    House(
        r"\bbooks (?:do|did|does) not close\b|\bclosing (?:the )?books\b",
        "accounting error",
        "The books do not close",
    ),
    House(
        r"\b(?:was|were) given away\b",
        "accounted for; categories sum to N %",
        "93 % of wall time was given away",
    ),
    House(
        r"\bcourse of (?:threads|a program|one run|the run|the program)\b",
        "timeline",
        "Write the course of threads",
    ),
    House(
        r"\bwhat each moment went to\b|\beach moment go to\b|\bof each moment, what\b",
        "how the time was spent over the run",
        "What did each moment go to?",
    ),
    House(
        r"\blooks? into a program\b|\bsee into\b",
        "cannot sample a program's code",
        "looks at /proc do not see into a program",
    ),
    # Who says what
    House(
        r"\btold apart\b|\btell apart\b|\btell (?:one|them) (?:from|apart)\b",
        "distinguish",
        "those that cannot be told apart",
    ),
    House(
        r"\b(?:is|are|was|were|be|been|also|not) told\b(?! (?:to|that|apart)\b)",
        "reported, shown, known",
        "the sum is told beside the figure",
    ),
    House(r"\b(?:position|kernel|sysctl|run|client) told\b", "reported, showed", "sysctl told nothing"),
    House(
        r"\bwho (?:waits|asks|shares|shows|copies|allocates|writes|does not see|goes|doubts|comes)\b",
        "name the subject: a thread, a user, the client",
        "rows of who waits longest",
    ),
    House(r"\b[Ww]hoever\b", "name the subject: a user, a program", "Whoever reads a file meanwhile"),
    House(r"\bnobody knows\b", "unknown", "on mains power, or when nobody knows"),
    House(r"\bwithout a word\b", "without a response", "2 of 9 ended without a word"),
    House(r"\bWho am I\b", "the machine, and what limits the figures", "Who am I, and what to distrust?"),
    # Page one and the report
    House(r"\b[Bb]efore you trust\b", "warnings", "Before you trust this: 3 things"),
    House(
        r"\bstands? behind\b|\b[Bb]ehind each figure\b|\bwhat is behind\b",
        "details",
        "with all that stands behind it",
    ),
    House(r"\bthe time ran out\b", "skipped (time)", "the time ran out before there were samples"),
    House(r"\binstrument's own\b|\bthe instrument itself\b", "timer overhead", "the instrument's own 22 ns"),
    House(
        r"\bby what answered\b",
        "size working sets to the effective capacity",
        "size a working set by what answered",
    ),
    House(r"\bspared to\b", "is avoided by", "is spared to programs that stay among 64 pages"),
    House(r"\bAlike: ", "form one group", "Alike: CPUs 0-3"),
    House(
        r"\b(?:is|be|are) paid before\b", "connection set-up cost", "What is paid before a request can go?"
    ),
    House(r"\bdevice's part is\b", "device time", "The device's part is not given"),
    House(
        r"\bcosts? to move data\b",
        "how long memory, disk, network and kernel operations take",
        "measures what it costs to move data",
    ),
    House(r"\bsomething else than\b", "something other than", "something else than the machine's design"),
    House(r"\bmade from the code\b", "generated from the code", "the reference is made from the code"),
    House(r"\bstands? apart\b", "is an outlier", "Which machine stands apart?"),
    House(
        r"(?:^|[.:;*] *|- )(?:Above|Below|Beside|At the end)\b[^.]{0,40}\bstands?\b",
        "put the subject first",
        "Above the table stands how far to trust it",
    ),
    House(r"\bdearer\b", "more expensive, slower", "a little cheaper or dearer"),
    # Lessons
    House(
        r"\b[Tt]he (?:original )?document(?:'s)?\b(?! has\b)",
        "the source, by its title",
        "the document's sizes",
    ),
    House(
        rf"\b(?:{_VARIANTS}) arms?\b|\barm'?s? (?:as|is|runs?|begins|alone)\b|\bnative arm\b",
        "the Rust probe; the plain-Python program; variant",
        "The native arm knows the causes",
    ),
    House(r"\bin turns\b", "alternately", "Medians of runs in turns"),
    House(r"\b(?:whole|two|of|/|w\)) turns\b", "batches", "ten files take whole turns"),
    House(
        r"\b(?:without a|reading|writing|calls? a|eight a|in a) turns?\b",
        "iteration, step",
        "sixteen calls a turn",
    ),
    House(r"\b(?:each|explained|handled) by itself\b", "separately", "Your URLs, each by itself"),
    House(r"\blets? go of\b", "drops", "the cache did not let go of the file"),
    House(r"\basked to forget\b", "dropped from the cache", "files that the cache was asked to forget"),
    House(r"\bnobody used lately\b", "not used recently", "pages that nobody used lately"),
    House(r"\ba (?:fixed )?price (?:of its own|whatever)\b", "fixed cost", "A file has a price of its own"),
    # Errors, options and comparisons
    House(
        r"(?<!\b[Tt]here )\bis no (?:URL|regular file|unit|share|TOML|list of|job|size"
        r"|ledger|rate\b|answer|virtual machine|UTF-8|address with|point of|name that|path that)",
        "is not a",
        "{} is no list of CPUs",
    ),
    House(
        r"\b(?:chunk|challenge|port|link|what came) (?:that )?is (?:none|no answer)\b",
        "is invalid, is not one",
        "needs a directory, and a symbolic link is none",
    ),
    House(
        r"\b(?:\w*CPU\w*|kernel|system|sysctl|driver|status) (?:does not (?:say|tell)|tells|says) it\b",
        "does not report it",
        "no driver tells it",
    ),
    House(
        r"\b(?:no path|none|no lock) (?:can|could) be had\b", "is not available", "no path can be had: netem"
    ),
    House(r"\bcomes? from outside\b", "its cause is outside this kernel", "the tick comes from outside"),
    House(r"\b[Ll]ifted by: |\bTo lift that\b", "to get an answer; remedy", "Lifted by: latlab measure"),
    House(r"(?<!such )\bas 30GB\b", "such as 30GB", "neither a size, as 30GB, nor a path"),
    House(r"\bfor want of\b", "for lack of; because buffers were full", "lost for want of room"),
    House(r"\b(?:would lift it|[Tt]o lift (?:it|this))\b", "remedy; how to fix it", "what would lift it"),
    House(
        r"\bheld against\b|\b[Hh]olds? a run against\b", "compared with", "The runs that RUN is held against"
    ),
    House(r"\blaid over (?:one|each|another)\b", "overlaid", "several runs laid over one another"),
    House(r"\bdealt out\b", "assigned to sides at random", "runs dealt out at random"),
    House(
        r"\b[Ww]hich change does not matter\b",
        "treat smaller changes as no change",
        "Which change does not matter",
    ),
)

#: Texts that keep such a phrase, with the reason.
EXCEPTIONS: Final = {
    "29473 us": "a published figure, exactly as it is printed",
    "1.38e-05 s, which is 13.8 us": "a published figure, exactly as it is printed",
    "there is a 10 us delay. Maybe a context switch?": "the notebook's own question",
    "planted stalls were heard": "the name of a proof, a value of run files",
    "the sleeper gave up its CPU each time": "the name of a proof, a value of run files",
    "reading turns found the known contents": "the name of a proof, a value of run files",
    "the server ended when it was told": "the name of a proof, a value of run files",
    "in assembly, eight a turn": "the name of an engine, a value of run files",
}

_RUST: Final = re.compile(
    r"""
    //[^\n]* | /\*.*?\*/                              # comments
    | reason\ =\ "[^"]*"                              # why a lint is off
    | b?r(?P<hashes>\#*)"(?P<raw>.*?)"(?P=hashes)
    | b?"(?P<text>(?:\\.|[^"\\])*)"
    | '(?:\\.[^']*|[^'\\])'                           # characters
    | (?P<test>\#\[cfg\(test\)\]\s*(?:\#\[[^\]]*\]\s*)*(?:pub(?:\(\w+\))?\ )?mod\ \w+\ \{)
    """,
    re.DOTALL | re.VERBOSE,
)
_JAVASCRIPT: Final = re.compile(r""""[^"\n]*"|'[^'\n]*'|`[^`]*`""")


def _python(source: str) -> Iterator[tuple[int, str]]:
    """String literals, with `{}` for what is filled in; no docstrings of private things."""
    tree = ast.parse(source)
    skipped: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and (
            node.name.startswith("_") or node in skipped
        ):
            skipped |= set(node.body)
            skipped |= {first.value for first in node.body[:1] if isinstance(first, ast.Expr)}
        if isinstance(node, ast.JoinedStr):
            skipped |= set(node.values)
            yield (
                node.lineno,
                "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values),
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in skipped:
            yield node.lineno, node.value


def _template(source: str) -> Iterator[tuple[int, str]]:
    """Lines of a Jinja template, of whose code only the strings are kept."""

    def prose(code: re.Match[str]) -> str:
        return "{" + " ".join(re.findall(r'"([^"]*)"', code[0])) + "}"

    yield from enumerate(
        re.sub(
            r"\{\{.*?\}\}|\{%.*?%\}",
            lambda code: prose(code) + "\n" * code[0].count("\n"),
            source,
            flags=re.DOTALL,
        ).split("\n"),
        1,
    )


def _rust(source: str) -> Iterator[tuple[int, str]]:
    """String literals before the module of tests."""
    for token in _RUST.finditer(source):
        if token["test"]:
            return
        text = token["text"] if token["text"] is not None else token["raw"]
        if text is not None:
            yield source.count("\n", 0, token.start()) + 1, re.sub(r"\\\n\s*", "", text)


def _javascript(source: str) -> Iterator[tuple[int, str]]:
    for token in _JAVASCRIPT.finditer(source):
        yield source.count("\n", 0, token.start()) + 1, token[0]


def _markdown(source: str) -> Iterator[tuple[int, str]]:
    """Paragraphs: a phrase may begin on one line and end on the next."""
    for paragraph in re.finditer(r"(?:.+\n?)+", source):
        yield source.count("\n", 0, paragraph.start()) + 1, paragraph[0]


READERS: Final = (
    (_python, sorted(ROOT.glob("python/latlab/**/*.py"))),
    (_template, sorted(ROOT.glob("python/latlab/**/*.j2"))),
    (_javascript, [ROOT / "python/latlab/report/assets/report.js"]),
    (
        _markdown,
        [
            ROOT / "README.md",
            *(page for page in sorted(ROOT.glob("docs/**/*.md")) if "_build" not in page.parts),
        ],
    ),
    (
        _rust,
        [
            file
            for file in sorted(ROOT.glob("crates/*/src/**/*.rs"))
            if "tests" not in (file.stem, *file.parts[-3:])
        ],
    ),
)


def texts() -> Iterator[Text]:
    """Everything that a person reads; a string without a space is a name."""
    for read, files in READERS:
        for path in files:
            for line, text in read(path.read_text(encoding="utf-8")):
                flat = re.sub(r"\s+", " ", text)
                if " " in flat:
                    yield Text(path.relative_to(ROOT), line, flat)


def found(text: str) -> list[tuple[str, str]]:
    """The phrases of the house in a text, each with what to write instead."""
    for kept in EXCEPTIONS:
        text = text.replace(kept, "")
    return [(match[0], house.instead) for house in PHRASES for match in re.finditer(house.pattern, text)]


@pytest.mark.parametrize("house", PHRASES, ids=lambda house: house.planted)
def test_a_phrase_of_the_house_is_noticed(house: House) -> None:
    assert house.instead in [instead for _, instead in found(house.planted)]
    assert found(f"latlab measures this. {house.planted}.")


def test_every_kind_of_text_is_read() -> None:
    assert list(_python('def f():\n    """Doc."""\n    return f"a {1} b"\ndef _g():\n    """None."""\n')) == [
        (2, "Doc."),
        (3, "a {} b"),
    ]
    assert list(_template('{% if x %}yes {{ "no" if y }}\n')) == [(1, "{}yes {no}"), (2, "")]
    assert list(
        _rust('let a = "one \\\n  two"; // "three"\nlet b = \'"\';\n#[cfg(test)]\nmod tests { "four" }')
    ) == [(1, "one two")]
    assert list(_javascript("a('one', `two`)")) == [(1, "'one'"), (1, "`two`")]
    assert list(_markdown("one\ntwo\n\nthree")) == [(1, "one\ntwo\n"), (4, "three")]


def test_nothing_that_a_person_reads_has_a_phrase_of_the_house() -> None:
    said = list(texts())
    assert len(said) > 9_000
    hits = [
        f"{path}:{line}: “{phrase}”: write: {instead}"
        for path, line, text in said
        for phrase, instead in found(text)
    ]
    assert not hits, "\n".join(["", *hits])


def test_every_exception_is_needed() -> None:
    said = [text for _, _, text in texts()]
    for kept in EXCEPTIONS:
        assert any(kept in text for text in said), kept
