"""Quotas that limit nobody. Which clients there are Kafka does not tell without metrics: what no client can be is."""

from collections.abc import Iterator

from kavka_broker.core.quota.entity import Entity
from kavka_operator.doctor.evidence import Examined, Finding, Severity, listed
from kavka_operator.doctor.open_listeners import nobody_has_a_name
from kavka_operator.domain.quota_entities import entity_text
from kavka_operator.quota.shadows import Neighbours, shadowed_by

ANONYMOUS = "ANONYMOUS"


def judged(seen: Examined) -> Iterator[Finding]:
    """The findings about quotas."""
    near = Neighbours(seen.quotas)
    hidden = []
    for entity in seen.quotas:
        own = set(near.limits[entity])
        winners = [other for other in shadowed_by(entity, near) if other.clients == "All"]
        if own and own <= {key for other in winners for key in other.keys}:
            hidden.append(f"{entity_text(entity)} by {winners[0].entity}")
    if hidden:
        what = f"{len(hidden)} quotas have no effect on any client: another always wins"
        fix = "delete them, or set them on the entity that wins: kavka explain quota shows the levels"
        yield Finding(Severity.WARNING, "quota-shadowed", what, listed(hidden), fix)
    if nobody_has_a_name(seen):
        named = [
            entity_text(entity)
            for entity in seen.quotas
            if isinstance(entity, Entity) and isinstance(entity.user, str) and entity.user != ANONYMOUS
        ]
        if named:
            what = f"{len(named)} quotas are of users that no client can be"
            evidence = f"every listener is PLAINTEXT, so that all are {ANONYMOUS}: {listed(named)}"
            fix = "limit client ids, or let clients authenticate"
            yield Finding(Severity.WARNING, "quota-of-nobody", what, evidence, fix)
