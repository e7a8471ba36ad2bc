"""Connects to a local cluster that runs."""

from collections.abc import Iterator
from contextlib import contextmanager

from kavka_cli.local_clusters import is_running
from kavka_cli.output import CommandError
from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.domain.access import OPEN, Security
from kavka_operator.kafka.admin import Admin
from kavka_operator.platform.external import SecretError, security_of
from kavka_operator.platform.local.access import CertificatesError, addresses_among_nodes, own_access
from kavka_operator.platform.local.layout import Layout
from kavka_operator.platform.local.secrets import read_secret
from kavka_operator.platform.local.store import Store


@contextmanager
def connected(layout: Layout, otherwise: str = "") -> Iterator[Admin]:
    """An admin client of the cluster. Raises CommandError where it does not run, and AdminError."""
    from kavka_operator.kafka.client import KafkaClient

    client = KafkaClient(*bootstrap_and_security(layout, otherwise))
    try:
        yield client
    finally:
        client.close()


def bootstrap_and_security(layout: Layout, otherwise: str = "") -> tuple[str, Security]:
    """Bootstrap addresses of a cluster, and what its brokers ask for. Raises CommandError where it does not run."""
    if not is_running(layout):
        raise CommandError(f'KafkaCluster "{layout.cluster}" is not running; start it with `kavka up`{otherwise}')
    cluster = next((resource for resource in Store(layout).all() if isinstance(resource, KafkaCluster)), None)
    address = cluster.status.bootstrap_servers if cluster is not None else None
    if cluster is None or address is None:
        raise CommandError(f'KafkaCluster "{layout.cluster}" has no brokers yet; see `kavka get kvc`')
    try:
        if cluster.spec.external is not None:
            return address, security_of(cluster.spec.external, lambda name: read_secret(layout, name))
        if cluster.spec.is_secured:
            return ",".join(addresses_among_nodes(layout)), own_access(layout)
    except (SecretError, CertificatesError) as error:
        raise CommandError(str(error)) from error
    return address, OPEN
