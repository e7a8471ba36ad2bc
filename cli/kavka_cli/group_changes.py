"""Changes of one consumer group: where it begins again (`kavka groups --reset-to`), and its end (`--delete`)."""

import json
from argparse import Namespace

from kavka_cli import offset_reset
from kavka_cli.moment import moment_ms
from kavka_cli.output import CommandError, note, say
from kavka_cli.target import Target
from kavka_operator.api.printer_columns import aligned
from kavka_operator.kafka.group_admin import GroupAdmin
from kavka_operator.kafka.offsets_and_lag import Group, Onlooker
from kavka_operator.kafka.record_counts import EARLIEST

IDLE_STATES = {"Empty", "Dead", ""}


def delete(target: Target, name: str, *, is_dry: bool) -> int:
    """Delete a group without members, or say that it would be; the exit code. Raises CommandError and AdminError."""
    client = GroupAdmin(target.bootstrap, target.security)
    try:
        group = groups_of(client, {name})[name]
        _check_is_idle(name, group)
        if not is_dry:
            client.delete(name)
    finally:
        client.close()
    offsets = "start offsets" if group.is_share else "committed offsets"
    say(f"group {name} deleted{' (dry run)' if is_dry else ''}, with {len(group.committed)} {offsets}")
    return 0


def reset(target: Target, options: Namespace) -> int:
    """Commit other offsets for a group without members, or say which; the exit code. Raises as `delete` does."""
    (name,), is_dry = options.group, options.dry_run != "none"
    client = GroupAdmin(target.bootstrap, target.security)
    try:
        groups = client.groups()
        if name not in groups and not options.topic:
            raise CommandError(f"there is no group {name}; with --topic one is made")
        group = groups.get(name, Group("", "", (), {}))
        if group.is_share:
            raise CommandError(
                f"{name} is a share group; kafka-share-groups.sh --reset-offsets moves its start offsets"
            )
        moves = _moves(client, group, options)
        if not is_dry:
            _check_is_idle(name, group)
            client.commit(name, {move.key: move.offset for move in moves})
    finally:
        client.close()
    if options.output == "json":
        partitions = list(offset_reset.documents(moves))
        say(json.dumps({"group": name, "dryRun": is_dry, "partitions": partitions}, indent=2))
    else:
        say(aligned(list(offset_reset.rows(name, moves))))
        note("dry run: nothing was committed" if is_dry else "committed")
    return 0


def _moves(client: Onlooker, group: Group, options: Namespace) -> list[offset_reset.Move]:
    """Return where each partition that is meant begins again. Raises CommandError and AdminError."""
    topics = set(options.topic)
    wanted = [
        partition
        for partition in client.members().partitions
        if (partition.topic in topics if topics else partition.key in group.committed)
    ]
    if missing := topics - {partition.topic for partition in wanted}:
        raise CommandError(f"there is no topic {', '.join(sorted(missing))}, or it may not be described")
    if not wanted:
        raise CommandError("the group has committed no offset; name topics: --topic TOPIC")
    starts, ends = client.ends(wanted, EARLIEST), client.ends(wanted)
    if unknown := sorted(partition.key for partition in wanted if partition.key not in starts.keys() & ends.keys()):
        raise CommandError(f"{unknown[0][0]}-{unknown[0][1]} has no leader now; try again when it has one")
    if options.reset_to.isdecimal():
        places = dict.fromkeys(ends, int(options.reset_to))
    else:
        moment = moment_ms(options.reset_to)
        places = dict(ends if moment is None else starts if moment == 0 else client.ends(wanted, moment))
    return offset_reset.moves_to(places, group.committed, starts, ends)


def _check_is_idle(name: str, group: Group) -> None:
    if group.state not in IDLE_STATES:
        count = len(group.members or ())
        members = f"{count} {'member' if count == 1 else 'members'}"
        raise CommandError(
            f"group {name} is {group.state} with {members}; stop them first, as they would commit over it"
        )


def groups_of(client: Onlooker, names: set[str]) -> dict[str, Group]:
    """Return all groups, or those of these names. Raises CommandError and AdminError."""
    groups = {name: group for name, group in client.groups().items() if not names or name in names}
    if missing := names - groups.keys():
        raise CommandError(f"there is no group {', '.join(sorted(missing))}, or it may not be described")
    return groups
