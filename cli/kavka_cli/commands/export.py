"""`kavka export`: topics, quotas and users of a cluster as resources.

It only reads, and says on stderr what is left out.
"""

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable
from dataclasses import replace

import yaml

from kavka_cli.exported_resources import (
    Document,
    LeftOut,
    Wanted,
    cluster_resource,
    exported_quotas,
    exported_topics,
    exported_users,
)
from kavka_cli.local_clusters import add_state_directory
from kavka_cli.output import CommandError, complain, say
from kavka_cli.target import LABELS, Target, add_target, find_target, target_options
from kavka_operator.domain.observed import SeenCluster
from kavka_operator.kafka.admin import AdminError
from kavka_operator.kafka.offsets_and_lag import Onlooker

HELP = (
    "Print topics, quotas and users as resources that change nothing when they are applied; of any Kafka too, which"
    " then gets a KafkaCluster named as --cluster says. What has a resource already is left out."
)
NAME = "kafka"


def add_options(parser: ArgumentParser) -> None:
    """Add the options of `kavka export`."""
    add_state_directory(parser)
    add_target(parser, has_pages=False)


def run(options: Namespace) -> int:
    """Print the resources; the exit code."""
    try:
        asked = target_options(options, labels=LABELS)
        found = find_target(asked)
        seen = _seen(found)
    except (CommandError, AdminError) as error:
        return complain(error)
    is_other = asked.bootstrap is not None
    wanted = Wanted((asked.cluster or NAME) if is_other else found.name, asked.where.namespace)
    topics = [topic for name, topic in seen.topics.items() if name not in found.claimed]
    quotas = {entity: values for entity, values in seen.quotas.items() if entity not in found.owners}
    head = [cluster_resource(wanted, found.bootstrap)] if is_other else []
    users = exported_users(wanted, seen.access, found.users) if seen.access is not None else ()
    _print([*head, *exported_topics(wanted, topics), *exported_quotas(wanted, quotas), *users])
    if found.claimed or found.owners or found.users:
        counts = f"{len(found.claimed)} topics, {len(found.owners)} quotas and {len(found.users)} users"
        words = f"{counts} that have a resource"
        sys.stderr.write(f"left out: {words}\n")
    return 0


def _print(parts: Iterable[Document | LeftOut]) -> None:
    texts = []
    for part in parts:
        if isinstance(part, LeftOut):
            sys.stderr.write(f"left out: {part.what}: {part.why}\n")
        else:
            texts.append(yaml.safe_dump(part, sort_keys=False, allow_unicode=True, width=110))
    say("---\n".join(texts).rstrip() if texts else "# no topics, no quotas and no users")


def _seen(found: Target) -> SeenCluster:
    client = Onlooker(found.bootstrap, found.security)
    try:
        seen = client.look({partition.topic for partition in client.members().partitions})
        try:
            return replace(seen, access=client.access(seen.brokers))
        except AdminError as error:
            sys.stderr.write(f"left out: users: {error}\n")
            return seen
    finally:
        client.close()
