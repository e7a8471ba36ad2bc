"""`kavka example`: the resource files to begin with, on stdout."""

import sys
from argparse import ArgumentParser, Namespace

from kavka_cli.output import CommandError, complain, say
from kavka_cli.packaged_examples import names, summary_of, text_of
from kavka_operator.api.printer_columns import aligned

HELP = "List example resource files, or print one: kavka example quickstart > cluster.yaml."


def add_options(parser: ArgumentParser) -> None:
    """Add the options of `kavka example`."""
    parser.add_argument("name", nargs="?", metavar="NAME", help="The example to print; without it they are listed.")


def run(options: Namespace) -> int:
    """Print the example or the list; the exit code."""
    if options.name is None:
        say(aligned([("EXAMPLE", "ABOUT"), *((name, summary_of(name)) for name in names())]))
        return 0
    try:
        sys.stdout.write(text_of(options.name))
    except LookupError as error:
        return complain(CommandError(error.args[0]))
    return 0
