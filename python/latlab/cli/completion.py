"""`latlab completion SHELL`."""

from __future__ import annotations

import click

_WHERE = {
    "bash": 'eval "$(latlab completion bash)"   in ~/.bashrc',
    "zsh": 'eval "$(latlab completion zsh)"   in ~/.zshrc',
    "fish": "latlab completion fish > ~/.config/fish/completions/latlab.fish",
}


@click.command("completion")
@click.argument("shell", type=click.Choice(list(_WHERE)))
def command(shell: str) -> None:
    """Print the completion script of a SHELL: bash, zsh or fish.

    \b
    Use it with:
      bash   eval "$(latlab completion bash)"   in ~/.bashrc
      zsh    eval "$(latlab completion zsh)"    in ~/.zshrc
      fish   latlab completion fish > ~/.config/fish/completions/latlab.fish
    """
    from click.shell_completion import get_completion_class  # noqa: PLC0415 - this command only

    from latlab.cli.main import group  # noqa: PLC0415 - it imports this module

    kind = get_completion_class(shell)
    assert kind is not None  # noqa: S101 - click knows the shells of the choice
    click.echo(kind(group, {}, "latlab", "_LATLAB_COMPLETE").source())
