"""`kavka profile delete`: removes a profile, with the password in it."""

from argparse import ArgumentParser, Namespace

from kavka_cli.output import CommandError, complain, say
from kavka_cli.profiles import profiles

HELP = "Delete a profile."


def add_options(parser: ArgumentParser) -> None:
    """Add the options of `kavka profile delete`."""
    parser.add_argument("name", metavar="PROFILE", help="The profile.")


def run(options: Namespace) -> int:
    """Delete the profile; the exit code."""
    try:
        profiles().delete(options.name)
    except CommandError as error:
        return complain(error)
    say(f'profile "{options.name}" is deleted')
    return 0
