"""`kavka profile clear`: lets commands take no profile, but one that they name."""

from argparse import ArgumentParser, Namespace

from kavka_cli.output import CommandError, complain, say
from kavka_cli.profiles import profiles

HELP = "Use no profile but where one is named; the profiles stay."


def add_options(parser: ArgumentParser) -> None:
    """Add the options of `kavka profile clear`, which has none."""


def run(options: Namespace) -> int:
    """Forget which profile is used; the exit code."""
    try:
        profiles().use(None)
    except CommandError as error:
        return complain(error)
    say("no profile is used")
    return 0
