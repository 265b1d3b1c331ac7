"""What is shown to whoever asks: help without waiting, examples that are true, completion."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from subprocess import CompletedProcess

import click
import pytest
from tests.some import some

from latlab.cli.main import COMMANDS, EPILOG, group

Command = Callable[..., CompletedProcess[str]]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(called: Command, name: str) -> None:
    result = called(name, "--help")
    assert result.returncode == 0
    assert result.stdout.startswith(f"Usage: latlab {name}")
    assert f"latlab {name}" in result.stdout.partition("\n")[2]
    assert max(map(len, result.stdout.splitlines())) <= 100


def test_help_lists_all_commands_on_lines_that_are_not_wrapped(called: Command) -> None:
    result = called("--help")
    assert result.returncode == 0
    for name, (_, line) in COMMANDS.items():
        assert re.search(rf"^  {name} +{re.escape(line)}$", result.stdout, re.MULTILINE)


def test_help_loads_no_command_and_nothing_that_is_slow() -> None:
    program = (
        "import sys\n"
        "from latlab.cli.main import run\n"
        "run(['--help'])\n"
        "print('loaded:', *sorted(sys.modules), file=sys.stderr)\n"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = result.stderr.split()
    slow = {"rich", "numpy", "msgspec", "altair", "sqlite3", "latlab._core", "latlab.run.model"}
    assert not slow & set(loaded)
    assert not {module for module, _ in COMMANDS.values()} & set(loaded)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_line_in_the_list_says_what_the_command_says_of_itself(name: str) -> None:
    found = group.get_command(click.Context(group), name)
    assert found is not None
    assert found.name == name
    assert found.help


def test_the_examples_name_commands_that_exist() -> None:
    for words in some(re.findall(r"^  latlab +([a-z]+)", EPILOG, re.MULTILINE)):
        assert words in COMMANDS


def test_options_without_a_command_are_those_of_measure(called: Command) -> None:
    result = called("--only", "nope")
    assert "--only: 'nope'" in result.stderr


def test_the_version_is_printed(called: Command) -> None:
    assert re.fullmatch(r"latlab \d+\.\d+\.\d+\S*\n", called("--version").stdout)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_gets_its_completion_script(called: Command, shell: str) -> None:
    result = called("completion", shell)
    assert result.returncode == 0
    assert "_LATLAB_COMPLETE" in result.stdout


def test_completion_knows_the_commands(command: Command) -> None:
    result = command(_LATLAB_COMPLETE="bash_complete", COMP_WORDS="latlab d", COMP_CWORD="1")
    assert "plain,doctor" in result.stdout
