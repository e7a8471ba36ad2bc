"""`kavka groups`: the groups of a cluster, of any Kafka too, with how far they are behind.

Metrics pages of Kavka tell of share groups also how old their oldest record is, and what came again or was given up.
With `--reset-to` a group begins elsewhere, with `--delete` it is gone; else the command only reads.
"""

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kavka_cli.group_changes import delete, groups_of, reset
from kavka_cli.local_clusters import add_state_directory
from kavka_cli.output import CommandError, complain, note, say
from kavka_cli.target import Target, add_target, find_target, target_options
from kavka_operator.api.printer_columns import aligned
from kavka_operator.domain import units
from kavka_operator.kafka.admin import AdminError
from kavka_operator.kafka.broker_metrics import ShareFigures, read_pages, shares_of, together
from kavka_operator.kafka.offsets_and_lag import Ends, Group, Onlooker

HELP = "List the groups of a cluster, of any Kafka too, with members and lag; reset or delete one."
SHARE_COLUMNS = ("OLDEST", "REDELIVERED", "ARCHIVED")


@dataclass(frozen=True, slots=True)
class Groups:
    """The groups, the ends of the partitions that they have offsets of, and what metrics pages tell of share groups, by
    group and topic.
    """

    groups: Mapping[str, Group]
    ends: Ends
    shares: Mapping[tuple[str, str], ShareFigures] = field(default_factory=dict)

    def figures(self, name: str) -> ShareFigures:
        """Return what metrics pages tell of a share group in all topics."""
        return together(figures for (group, _), figures in self.shares.items() if group == name)


def add_options(parser: ArgumentParser) -> None:
    """Add the options of `kavka groups`."""
    add_state_directory(parser)
    add_target(parser)
    words = "Only this group, partition by partition; may be given more than once."
    parser.add_argument("--group", "-g", action="append", default=[], metavar="GROUP", help=words)
    words = (
        "Commit other offsets for one group without members: start, now, an offset, a time ago such as -1h, or a time."
    )
    parser.add_argument("--reset-to", metavar="WHERE", help=words)
    words = "With --reset-to: only this topic, also where the group has committed nothing; may be given more than once."
    parser.add_argument("--topic", "-t", action="append", default=[], metavar="TOPIC", help=words)
    parser.add_argument("--delete", action="store_true", help="Delete one group without members, with its offsets.")
    words = "With --reset-to and --delete: say what would be, and change nothing."
    parser.add_argument("--dry-run", choices=("none", "client"), default="none", help=words)
    parser.add_argument("--output", "-o", choices=("table", "json", "name"), default="table", help="Output format.")


def run(options: Namespace) -> int:
    """Print the groups, or change one; the exit code."""
    try:
        _check(options)
        asked = target_options(options, is_change=options.delete or options.reset_to is not None)
        if options.delete:
            return delete(find_target(asked), options.group[0], is_dry=options.dry_run != "none")
        if options.reset_to is not None:
            return reset(find_target(asked), options)
        found = _groups(find_target(asked), set(options.group))
    except (CommandError, AdminError) as error:
        return complain(error)
    match options.output:
        case "json":
            say(json.dumps({"groups": list(as_documents(found))}, indent=2))
        case "name":
            say("\n".join(found.groups))
        case _ if not found.groups:
            note("no groups")
        case _:
            say(aligned(list(partition_rows(found) if options.group else group_rows(found))))
    return 0


def _check(options: Namespace) -> None:
    """Raise CommandError where options do not go together."""
    changes = bool(options.delete) + (options.reset_to is not None)
    if changes > 1:
        raise CommandError("--reset-to and --delete do not go together")
    if changes and len(options.group) != 1:
        raise CommandError("name the one group that is meant: --group GROUP")
    if options.topic and options.reset_to is None:
        raise CommandError("--topic goes with --reset-to")
    if options.reset_to is not None and options.output == "name":
        raise CommandError("--reset-to prints a table or json")


def group_rows(found: Groups) -> Iterator[list[str]]:
    """A line for each group; where one is a share group, with what metrics pages tell of those."""
    has_shares = any(group.is_share for group in found.groups.values())
    yield ["GROUP", "TYPE", "STATE", "MEMBERS", "TOPICS", "LAG", *(SHARE_COLUMNS if has_shares else ())]
    for name, group in found.groups.items():
        topics = {topic for topic, _ in group.partitions}
        members = units.UNKNOWN if group.members is None else str(len(group.members))
        lag = units.exact(group.total_lag(found.ends))
        shared = _share_cells(found.figures(name)) if group.is_share else [""] * len(SHARE_COLUMNS)
        yield [name, group.kind, group.state, members, str(len(topics)), lag, *(shared if has_shares else ())]


def _share_cells(figures: ShareFigures) -> list[str]:
    oldest = units.UNKNOWN if figures.oldest_seconds is None else units.seconds(figures.oldest_seconds)
    counts = (figures.redelivered, figures.archived)
    return [oldest, *(units.exact(None if count is None else round(count)) for count in counts)]


def partition_rows(found: Groups) -> Iterator[list[str]]:
    """A line for each partition with a committed offset, or with the start offset of a share group."""
    kinds = {"START" if group.is_share else "COMMITTED" for group in found.groups.values()}
    yield ["GROUP", "TOPIC", "PARTITION", " OR ".join(sorted(kinds)), "END", "LAG"]
    for name, group in found.groups.items():
        for topic, index in group.partitions:
            key = topic, index
            offset, end = units.exact(group.committed.get(key)), units.exact(found.ends.get(key))
            yield [name, topic, str(index), offset, end, units.exact(group.lag(key, found.ends))]


def as_documents(found: Groups) -> Iterator[dict[str, Any]]:
    """The groups as programs read them; null is what the cluster did not tell."""
    for name, group in found.groups.items():
        yield {
            "name": name,
            "type": group.kind,
            "state": group.state,
            "members": None
            if group.members is None
            else [{"clientId": client_id, "host": host} for client_id, host in group.members],
            "lag": group.total_lag(found.ends),
            "share": [
                {"topic": topic, **_share_document(figures)}
                for (of, topic), figures in sorted(found.shares.items())
                if of == name
            ]
            if group.is_share
            else None,
            "partitions": [
                {
                    "topic": topic,
                    "partition": index,
                    "startOffset" if group.is_share else "committedOffset": group.committed.get((topic, index)),
                    "endOffset": found.ends.get((topic, index)),
                    "lag": group.lag((topic, index), found.ends),
                }
                for topic, index in group.partitions
            ],
        }


def _share_document(figures: ShareFigures) -> dict[str, float | None]:
    return {
        "oldestRecordSeconds": figures.oldest_seconds,
        "redelivered": figures.redelivered,
        "archived": figures.archived,
    }


def _groups(target: Target, names: set[str]) -> Groups:
    """Ask a cluster for its groups, or for those of these names. Raises CommandError and AdminError."""
    client = Onlooker(target.bootstrap, target.security)
    try:
        groups = groups_of(client, names)
        known = {key for group in groups.values() for key in group.partitions}
        wanted = [partition for partition in client.members().partitions if partition.key in known]
        pages = read_pages(target.urls) if any(group.is_share for group in groups.values()) else {}
        return Groups(groups, client.ends(wanted), shares_of(pages.values()))
    finally:
        client.close()
