"""`kavka profile list`: prints the profiles, and which one is used."""

import json
import os
from argparse import ArgumentParser, Namespace

from kavka_cli.output import CommandError, complain, note, say
from kavka_cli.profiles import PROFILE_VARIABLE, profiles
from kavka_operator.api.printer_columns import aligned

HELP = "List the profiles, and which one is used."


def add_options(parser: ArgumentParser) -> None:
    """Add the options of `kavka profile list`."""
    parser.add_argument("--output", "-o", choices=("table", "json", "name"), default="table", help="Output format.")


def run(options: Namespace) -> int:
    """Print the profiles; the exit code. Names are listed also where a file cannot be read."""
    known = profiles()
    try:
        if options.output == "name":
            say("\n".join(known.names()))
            return 0
        named = os.environ.get(PROFILE_VARIABLE)
        used = known.current if named is None else named
        found = [*known]
        logins = [of.login for of in found]
    except CommandError as error:
        return complain(error)
    if options.output == "json":
        documents = [
            {"name": of.name, "isUsed": of.name == used, "bootstrapServers": of.bootstrap, "login": login}
            for of, login in zip(found, logins, strict=True)
        ]
        say(json.dumps({"profiles": documents}, indent=2))
    elif not found:
        note("no profiles; make one with `kavka profile create`")
    else:
        rows = [
            ["*" if of.name == used else "", of.name, of.bootstrap, login]
            for of, login in zip(found, logins, strict=True)
        ]
        say(aligned([["USED", "NAME", "BOOTSTRAP", "LOGIN"], *rows]))
    return 0
