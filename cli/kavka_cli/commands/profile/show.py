"""`kavka profile show`: prints the properties of a profile, without passwords and keys."""

from argparse import ArgumentParser, Namespace

from kavka_cli.output import CommandError, complain, say
from kavka_cli.profiles import Profile, default_profile, profiles

HELP = "Print the properties of a profile, without passwords and keys."


def add_options(parser: ArgumentParser) -> None:
    """Add the options of `kavka profile show`."""
    parser.add_argument("name", nargs="?", metavar="PROFILE", help="The profile; not needed for the one that is used.")


def run(options: Namespace) -> int:
    """Print the profile; the exit code."""
    try:
        found = _chosen(options.name)
    except CommandError as error:
        return complain(error)
    say("\n".join([f"# {profiles().path(found.name)}", *(f"{name}={value}" for name, value in found.shown.items())]))
    return 0


def _chosen(name: str | None) -> Profile:
    """The profile of a name, or the one that is used. Raises CommandError."""
    found = default_profile() if name is None else profiles().get(name)
    if found is None:
        raise CommandError("no profile is used; name one, or `kavka profile use` one")
    return found
