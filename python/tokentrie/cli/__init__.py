"""The command line `tokentrie`, one file a command."""

from tokentrie.cli.app import main

__all__ = ["main"]
