"""The `kavka` command line: the root parser, and the exit code of the command that was run.

argparse and no library: an installation carries little, and `--help` waits for nothing (docs/adr/0017). Each command
is a file of `commands`, which `registry` finds.
"""

import re
import sys
from collections.abc import Sequence

from kavka_cli import commands
from kavka_cli.plugin import is_plugin
from kavka_cli.registry import CommandParser, Parser, add_commands, command_names

OF_TIME = ("--from", "--until", "--reset-to")
AGO = re.compile(r"-\d")
ABOUT = "Kafka clusters, topics, quotas and users from resource files: on this machine, and on Kubernetes."


def parser(*, has_help: bool = True) -> Parser:
    """The parser of every command; without `has_help` its own help does not list them, and it is made sooner."""
    root = Parser(prog="kubectl kavka" if is_plugin() else "kavka", description=ABOUT, allow_abbrev=False)
    root.add_argument("--version", action="store_true", help="Print the version.")
    parsers = root.add_subparsers(metavar="COMMAND", title="commands", parser_class=CommandParser)
    add_commands(parsers, commands, has_help=has_help)
    return root


def joined(words: Sequence[str]) -> list[str]:
    """The words as argparse understands them: `--dry-run` alone has a value, and a time ago (`--from -5m`) is one."""
    found: list[str] = []
    for word in words:
        if found and found[-1] in OF_TIME and AGO.match(word):
            found[-1] += f"={word}"
        else:
            found.append("--dry-run=client" if word == "--dry-run" else word)
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and exit with its code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    root = parser(has_help=not set(words[:1]) & set(command_names()))
    options = root.parse_args(joined(words))
    if options.version:
        from importlib.metadata import version

        sys.stdout.write(f"kavka {version('kavka-cli')}\n")
        sys.exit(0)
    if "run" not in options:
        root.print_help()
        sys.exit(2)
    sys.exit(options.run(options))
