"""Writes a resource file with suggested limits, which a person reviews before it is applied.

A new limit is to be observed first; one that replaces an enforced limit stays enforced, as it would end it otherwise.
"""

import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import yaml

from kavka_cli.target import Target, TargetOptions
from kavka_operator.api import API_VERSION
from kavka_operator.api.quantity import spell
from kavka_operator.api.quota import KAFKA_KEYS, AnyEntity, ClientQuota
from kavka_operator.domain import units
from kavka_operator.domain.quota_entities import entity_text, to_wire
from kavka_operator.quota.recommendation import HEADROOM, PERCENTILE, Fit, Recommendation

NAME_CHARACTERS_MAX = 40
FIELDS = {"user": "user", "client-id": "clientId", "ip": "ip"}


@dataclass(frozen=True, slots=True)
class How:
    """Options of a person that say how limits are found."""

    duration: str = "60s"
    prometheus: str | None = None
    headroom: float = HEADROOM
    percent: float = PERCENTILE


def cluster_name(options: TargetOptions, found: Target) -> str:
    """Return the name of the KafkaCluster as far as it is known."""
    return options.cluster or (found.name if options.bootstrap is None else "CLUSTER")


def resource(
    recommendation: Recommendation, cluster: str, namespace: str, owners: Mapping[AnyEntity, ClientQuota]
) -> dict[str, object]:
    """A recommendation as a ClientQuota; one that takes the place of another keeps the rest of it."""
    owner = owners.get(recommendation.entity)
    before = owner.spec.limits.kafka_values() if owner is not None else {}
    overrides = [override.to_dict() for override in owner.spec.overrides] if owner is not None else []
    limits = {**before, **recommendation.others, **{fit.key: float(fit.limit) for fit in recommendation.fits}}
    entity = {
        FIELDS[kind]: {"default": True} if name is None else {"name": name}
        for kind, name in to_wire(recommendation.entity).items()
    }
    return {
        "apiVersion": API_VERSION,
        "kind": "ClientQuota",
        "metadata": {
            "name": owner.name if owner is not None else _name(recommendation.entity),
            "namespace": namespace,
        },
        "spec": {
            "clusterRef": {"name": cluster},
            "entity": entity,
            "mode": "Observe" if recommendation.is_new else "Enforce",
            "limits": {KAFKA_KEYS[key]: _quantity(key, limit) for key, limit in sorted(limits.items())},
            **({"overrides": overrides} if overrides else {}),
        },
    }


def file_of(
    recommendations: Sequence[Recommendation],
    cluster: str,
    namespace: str,
    owners: Mapping[AnyEntity, ClientQuota],
    how: How,
) -> Iterator[str]:
    """Give the lines of a file with a resource for each recommendation."""
    yield f"# Limits for each broker: p{how.percent:g} of demand at the busiest one, times {how.headroom:g}."
    yield "# Review them, then `kavka apply -f` this file. Observe measures and holds nobody; Enforce throttles."
    for recommendation in recommendations:
        if (owner := owners.get(recommendation.entity)) is not None and owner.spec.scope == "Cluster":
            yield f"# {entity_text(recommendation.entity)}: left out, as {owner.identity} is for the whole cluster."
            continue
        yield "---"
        yield f"# {entity_text(recommendation.entity)}"
        yield from (f"# {_why(fit)}" for fit in recommendation.fits)
        made = resource(recommendation, cluster, namespace, owners)
        yield yaml.safe_dump(made, sort_keys=False, allow_unicode=True, width=110).rstrip()


def _why(fit: Fit) -> str:
    estimated = "" if fit.demand <= fit.rate else f", estimated from {units.rate(fit.rate)} while it was held back"
    words = (
        f"{KAFKA_KEYS[fit.key]}: demand {units.rate(fit.demand)}{estimated}, broker {fit.broker}, {fit.count} samples"
    )
    return words if fit.now is None else f"{words}; now {spell(fit.now)}, enforced"


def _quantity(key: str, limit: float) -> str | float:
    return spell(limit) if key.endswith("byte_rate") else limit


def _name(entity: AnyEntity) -> str:
    """A name for a resource: the words of the entity as far as Kubernetes takes them, and a sum where it takes less."""
    words = "-".join(name or "default" for name in to_wire(entity).values())
    words_only = re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")[:NAME_CHARACTERS_MAX].strip("-")
    parts = ["recommended", words_only, "" if words_only == words else f"{zlib.crc32(repr(entity).encode()):08x}"]
    return "-".join(part for part in parts if part)
