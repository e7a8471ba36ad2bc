"""`kavka profile use`: lets commands take a profile where nothing names another cluster."""

from argparse import ArgumentParser, Namespace

from kavka_cli.output import CommandError, complain, say
from kavka_cli.profiles import profiles

HELP = "Use a profile from now on where nothing names another cluster."


def add_options(parser: ArgumentParser) -> None:
    """Add the options of `kavka profile use`."""
    parser.add_argument("name", metavar="PROFILE", help="The profile.")


def run(options: Namespace) -> int:
    """Remember the profile; the exit code."""
    try:
        profiles().use(options.name)
    except CommandError as error:
        return complain(error)
    say(f'profile "{options.name}" is used')
    return 0
