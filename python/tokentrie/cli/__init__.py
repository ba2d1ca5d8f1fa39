"""The command line: `tokentrie demo`, `tokentrie generate`, `tokentrie inspect`."""

from tokentrie.cli.app import main

__all__ = ["main"]
