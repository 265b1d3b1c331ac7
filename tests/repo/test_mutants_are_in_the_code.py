"""The defects that tools/mutants.py plants are changes of code that there is."""

from __future__ import annotations

import tomllib
from pathlib import Path

from tests.some import some


def test_each_text_that_is_replaced_is_in_its_file_once_and_its_tests_exist(root: Path) -> None:
    files = tomllib.loads((root / "tools/mutants.toml").read_text(encoding="utf-8"))
    for name, about in some(files.items()):
        text = (root / "python/latlab" / name).read_text(encoding="utf-8")
        assert [old for old, *_ in some(about["mutants"]) if text.count(old) != 1] == [], name
        assert [test for test in some(about["tests"]) if not (root / test.partition("::")[0]).exists()] == []
