"""`kavka version`: the versions of this command and of Python."""

import json
import platform
from argparse import ArgumentParser, Namespace
from importlib.metadata import version

from kavka_cli.output import say

HELP = "Print the version of this command."


def add_options(parser: ArgumentParser) -> None:
    """Add the options of `kavka version`."""
    parser.add_argument("--output", "-o", choices=("text", "json"), default="text", help="Output format.")


def run(options: Namespace) -> int:
    """Print the versions; the exit code."""
    own, python = version("kavka-cli"), platform.python_version()
    say(json.dumps({"kavka": own, "python": python}) if options.output == "json" else f"kavka {own} (Python {python})")
    return 0
