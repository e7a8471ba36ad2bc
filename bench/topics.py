"""Topics for one measure: made before it, gone after it."""

import itertools
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from confluent_kafka import admin as kafka_admin
from confluent_kafka.cimpl import NewTopic

ADMIN_SECONDS_MAX = 30.0
_numbers = itertools.count(1)


@contextmanager
def topic(bootstrap: str, partitions: int, replicas: int = 1, config: Mapping[str, str] | None = None) -> Iterator[str]:
    """A new topic that is deleted at the end."""
    admin = kafka_admin.AdminClient({"bootstrap.servers": bootstrap, "log_level": 3})
    name = f"bench-{next(_numbers)}"
    create(admin, name, partitions, replicas, config)
    yield name
    admin.delete_topics([name], operation_timeout=ADMIN_SECONDS_MAX)[name].result(ADMIN_SECONDS_MAX)


def create(
    admin: kafka_admin.AdminClient,
    name: str,
    partitions: int,
    replicas: int = 1,
    config: Mapping[str, str] | None = None,
) -> None:
    """Create a topic and wait until every partition has a leader."""
    wanted = NewTopic(name, partitions, replicas, config=dict(config or {}))
    admin.create_topics([wanted], operation_timeout=ADMIN_SECONDS_MAX)[name].result(ADMIN_SECONDS_MAX)
    deadline = time.monotonic() + ADMIN_SECONDS_MAX
    while time.monotonic() < deadline:
        found = admin.list_topics(name, ADMIN_SECONDS_MAX).topics[name].partitions
        if len(found) == partitions and all(partition.leader >= 0 for partition in found.values()):
            return
        time.sleep(0.02)
    raise TimeoutError(f"{name} has no leaders after {ADMIN_SECONDS_MAX:g} s")
