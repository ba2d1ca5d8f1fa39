"""Completion of commands and options by the shell. typer does the work."""

from __future__ import annotations

import os

import typer

PROGRAM = "tokentrie"
VARIABLE = "_TOKENTRIE_COMPLETE"
SHELLS = ("bash", "zsh", "fish")


def script(shell: str) -> str:
    """Returns the script that makes a shell complete.

    Raises:
        BadParameter: another shell.
    """
    if shell not in SHELLS:
        raise typer.BadParameter(
            f"unknown shell {shell!r}: expected one of {', '.join(SHELLS)}", param_hint="--print-completion"
        )
    from typer import completion

    made = completion.get_completion_script(  # type: ignore[attr-defined]
        prog_name=PROGRAM, complete_var=VARIABLE, shell=shell
    )
    return str(made)


def prepare() -> None:
    """To be called before the command line is read: where a shell asks for completions, it shall get them."""
    if VARIABLE in os.environ:
        from typer import completion

        completion.completion_init()  # type: ignore[attr-defined]
