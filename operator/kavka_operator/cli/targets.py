"""Which cluster a command asks: one that `kavka up` runs, or any other by its bootstrap addresses."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kavka_broker.core.config.properties import parse_properties
from kavka_operator.api.quota import AnyEntity, ClientQuota, entity_of
from kavka_operator.cli.asking import address_of
from kavka_operator.cli.words import CommandError, state_directory, the_cluster
from kavka_operator.platform.local.files import read_text
from kavka_operator.platform.local.layout import Layout
from kavka_operator.platform.local.store import Store


@dataclass(frozen=True, slots=True)
class Asked:
    """What a person typed to say which cluster is meant: with `bootstrap` any Kafka, whose pages `metrics` names."""

    bootstrap: str | None = None
    metrics: str = ""
    cluster: str | None = None
    namespace: str = "default"
    state: Path | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """A cluster that runs. `owners` are the resources of local clusters that set quotas: of several the oldest."""

    name: str
    bootstrap: str
    urls: tuple[str, ...] = ()
    owners: Mapping[AnyEntity, ClientQuota] = field(default_factory=dict)


def target(asked: Asked) -> Target:
    """The cluster that is meant. Raises CommandError where none is, or it does not run."""
    if asked.bootstrap is not None:
        return Target(asked.bootstrap, asked.bootstrap, urls_of(asked.metrics))
    local = _local(the_cluster(state_directory(asked.state), asked.namespace, asked.cluster))
    return Target(local.name, local.bootstrap, urls_of(asked.metrics) or local.urls, local.owners)


def urls_of(metrics: str) -> tuple[str, ...]:
    """The URLs of metrics pages, of which a person names several with commas. Raises CommandError."""
    from kavka_operator.kafka.figures import url_of

    try:
        return tuple(url_of(address.strip()) for address in metrics.split(",")) if metrics else ()
    except ValueError as error:
        raise CommandError(f"--metrics: {error}") from error


def _local(layout: Layout) -> Target:
    quotas = [resource for resource in Store(layout).all() if isinstance(resource, ClientQuota)]
    quotas.sort(key=lambda quota: quota.seniority, reverse=True)
    owners = {entity_of(quota.spec.entity): quota for quota in quotas}
    return Target(layout.cluster, address_of(layout), _pages(layout), owners)


def _pages(layout: Layout) -> tuple[str, ...]:
    """The metrics pages of the nodes that run, from the settings that they were started with."""
    from kavka_operator.kafka.figures import url_of

    nodes = sorted(int(path.stem.removeprefix("node-")) for path in layout.root.glob("node-*.pid"))
    settings = [parse_properties(read_text(layout.properties(node)) or "") for node in nodes]
    return tuple(url_of(address) for node in settings if (address := node.get("kavka.admin.listener")))
