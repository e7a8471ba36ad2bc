"""Reads the names of resources in a command line: `kvt`, `kvc,kvt`, `kvt orders flights`, `kvt/orders kvc/main`."""

from argparse import ArgumentParser
from collections.abc import Sequence

from kavka_cli.output import CommandError
from kavka_operator.api.kinds import KINDS, find_kind

ALL = ("all", "kavka")
RESOURCES_HELP = (
    "KIND[,KIND] [NAME]... or KIND/NAME...; kinds are kafkacluster, topic, clientquota, kafkauser (kvc, kvt, kvq, kvu)"
    " and all."
)

Named = tuple[str, str | None]
"""A kind and a name; every resource of the kind where the name is None."""


def add_resource_names(parser: ArgumentParser) -> None:
    """Add the words that name resources."""
    parser.add_argument("words", nargs="*", metavar="RESOURCE", help=RESOURCES_HELP)


def parse_names(words: Sequence[str]) -> list[Named]:
    """The resources that the words name, each once, in the order of the words. Raises CommandError."""
    if any("/" in word for word in words):
        found = [named for word in words for named in _with_slash(word)]
    else:
        kinds = [kind for text in (words[0] if words else "all").split(",") for kind in kinds_of(text)]
        names: list[str | None] = [*words[1:]] or [None]
        found = [(kind, name) for kind in kinds for name in names]
    return list(dict.fromkeys(found))


def _with_slash(word: str) -> list[Named]:
    """The resources that KIND/NAME names. Raises CommandError."""
    kind, _, name = word.partition("/")
    if not kind or not name or "/" in name:
        raise CommandError("write KIND/NAME for each resource, or KIND NAME NAME")
    return [(found, name) for found in kinds_of(kind)]


def kinds_of(text: str) -> list[str]:
    """The kinds that a word means, in the order in which they are shown. Raises CommandError."""
    if text in ALL:
        return list(KINDS)
    kind = find_kind(text)
    if kind is None:
        known = ", ".join(f"{known_kind.kind_name.lower()} ({known_kind.short_name})" for known_kind in KINDS.values())
        raise CommandError(f'there is no kind "{text}"; write {known} or all')
    return [kind.kind_name]
