"""`bough completion`: the script that lets a shell complete commands, options, jobs and queues."""

from __future__ import annotations

from typing import Final

import click

VARIABLE: Final = "_BOUGH_COMPLETE"
#: Where each shell reads it from.
HOW: Final = {
    "bash": "bough completion bash > ~/.local/share/bash-completion/completions/bough",
    "zsh": "bough completion zsh > ~/.zfunc/_bough   # with fpath+=~/.zfunc before compinit",
    "fish": "bough completion fish > ~/.config/fish/completions/bough.fish",
}


@click.command("completion")
@click.argument("shell", type=click.Choice(list(HOW)))
def command(shell: str) -> None:
    """Print the completion script for SHELL.

    \b
    bough completion bash > ~/.local/share/bash-completion/completions/bough
    bough completion zsh > ~/.zfunc/_bough
    bough completion fish > ~/.config/fish/completions/bough.fish
    """
    click.echo(script(shell), nl=False)


def script(shell: str) -> str:
    """Without asking the shell for its version: it may be for another machine."""
    from click.shell_completion import get_completion_class

    from bough.cli import cli

    kind = get_completion_class(shell)
    assert kind is not None
    found = kind(cli, {}, "bough", VARIABLE)
    return f"# {HOW[shell]}\n{found.source_template % found.source_vars()}"
