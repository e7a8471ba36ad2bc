"""The `kavka` command. Modules of the commands are imported when one of them runs, so that `--help` is quick."""

from kavka_operator.cli.app import main

__all__ = ["main"]
