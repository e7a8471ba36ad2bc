"""A connection to a cluster that runs, for commands that ask it something."""

from collections.abc import Iterator
from contextlib import contextmanager

from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.cli.words import CommandError, is_running
from kavka_operator.kafka.admin import Admin
from kavka_operator.platform.local.layout import Layout
from kavka_operator.platform.local.store import Store


@contextmanager
def asking(layout: Layout, otherwise: str = "") -> Iterator[Admin]:
    """An admin client of the cluster. Raises CommandError where it does not run, and AdminError."""
    from kavka_operator.kafka.client import KafkaClient

    client = KafkaClient(address_of(layout, otherwise))
    try:
        yield client
    finally:
        client.close()


def address_of(layout: Layout, otherwise: str = "") -> str:
    """Bootstrap addresses of a cluster. Raises CommandError where it does not run."""
    if not is_running(layout):
        raise CommandError(f'KafkaCluster "{layout.cluster}" is not running; start it with `kavka up`{otherwise}')
    cluster = next((resource for resource in Store(layout).all() if isinstance(resource, KafkaCluster)), None)
    address = cluster.status.bootstrap_servers if cluster is not None else None
    if address is None:
        raise CommandError(f'KafkaCluster "{layout.cluster}" has no brokers yet; see `kavka get kvc`')
    return address
