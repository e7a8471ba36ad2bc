"""`kavka quota recommend`: limits that fit what clients do, as a resource file to review.

A new limit is to be observed first; one that replaces an enforced limit stays enforced, as it would end it otherwise.
"""

import re
import sys
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import yaml

from kavka_operator.api import API_VERSION
from kavka_operator.api.model import plain
from kavka_operator.api.quantity import spell
from kavka_operator.api.quota import KAFKA_KEYS, AnyEntity, ClientQuota
from kavka_operator.cli.targets import Asked, Target, target
from kavka_operator.cli.waiting import parse_duration
from kavka_operator.cli.words import CommandError, complain, say
from kavka_operator.domain import units
from kavka_operator.domain.entities import entity_text, to_wire
from kavka_operator.kafka.admin import AdminError
from kavka_operator.kafka.figures import Page, growth, read_pages
from kavka_operator.kafka.onlooking import Onlooker
from kavka_operator.kafka.prometheus import kept
from kavka_operator.quota.recommending import HEADROOM, PERCENTILE, Fit, Observed, Recommendation, Samples, recommend

EVERY_SECONDS = 2.0
SECONDS_MAX = 30 * 86_400.0
NAME_CHARACTERS_MAX = 40
FIELDS = {"user": "user", "client-id": "clientId", "ip": "ip"}


@dataclass(frozen=True, slots=True)
class How:
    """Options of a person that say how limits are found."""

    duration: str = "60s"
    prometheus: str | None = None
    headroom: float = HEADROOM
    percent: float = PERCENTILE


def recommend_quotas(asked: Asked, how: How) -> int:
    """Print resources with limits that fit; the exit code."""
    try:
        seconds = _seconds(how)
        found = target(asked)
        limits = _limits(found)
        observed = _observed(found, how, seconds)
    except (CommandError, AdminError) as error:
        return complain(error)
    recommendations = recommend(observed, limits, headroom=how.headroom, percent=how.percent)
    if not recommendations:
        return complain(CommandError("no client used anything that brokers measure in this time"))
    cluster = cluster_name(asked, found)
    say("\n".join(file_of(recommendations, cluster, found.namespace, found.owners, how)))
    return 0


def cluster_name(asked: Asked, found: Target) -> str:
    """Return the name of the KafkaCluster as far as it is known."""
    return asked.cluster or (found.name if asked.bootstrap is None else "CLUSTER")


def sampled(
    urls: Sequence[str],
    seconds: float,
    read: Callable[[Sequence[str]], Mapping[str, Page]] = read_pages,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> dict[Observed, Samples]:
    """Samples of the metrics pages in this time. Raises CommandError where none answers."""
    observed: dict[Observed, Samples] = {}
    before: tuple[float, Mapping[str, Page]] = (clock(), {})
    for number in range(1 + int(seconds / EVERY_SECONDS)):
        if number:
            sleep(EVERY_SECONDS)
        at_s, pages = clock(), read(urls)
        if not pages and not before[1]:
            raise CommandError("no metrics page answers")
        for broker, page in pages.items():
            _note(observed, broker, page, before[1].get(broker), at_s - before[0])
        before = at_s, pages
    return observed


def _note(observed: dict[Observed, Samples], broker: str, page: Page, before: Page | None, seconds: float) -> None:
    """Add a sample of each client of a page. Of who is under no quota the rate is what was counted meanwhile."""
    for key, figures in page.clients.items():
        counted = growth(figures, before.clients.get(key) if before is not None else None, seconds)
        who = Observed(key.user, key.client_id, key.kind, broker)
        rate = figures.rate if figures.rate is not None else counted
        observed.setdefault(who, Samples()).add(rate, figures.demand)


def resource(
    recommendation: Recommendation, cluster: str, namespace: str, owners: Mapping[AnyEntity, ClientQuota]
) -> dict[str, object]:
    """A recommendation as a ClientQuota; one that takes the place of another keeps the rest of it."""
    owner = owners.get(recommendation.entity)
    before = owner.spec.limits.kafka_values() if owner is not None else {}
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
            **({"overrides": plain(owner.spec.overrides)} if owner is not None and owner.spec.overrides else {}),
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


def _seconds(how: How) -> float:
    """The seconds to observe. Raises CommandError where an option cannot be meant."""
    seconds = parse_duration(how.duration)
    if not 0 < seconds <= SECONDS_MAX:
        raise CommandError("--for is more than 0s and at most 30 days")
    if not 0 < how.percent <= 100:
        raise CommandError("--percentile is above 0 and at most 100")
    if not 1 <= how.headroom <= 100:
        raise CommandError("--headroom is from 1 to 100")
    return seconds


def _observed(found: Target, how: How, seconds: float) -> dict[Observed, Samples]:
    """Samples of clients' traffic, from Prometheus or from the brokers' pages. Raises CommandError and AdminError."""
    if how.prometheus is not None:
        return kept(how.prometheus, seconds, time.time())
    if not found.urls:
        raise CommandError("Kafka's API does not tell usage; name metrics pages with --metrics, or a --prometheus")
    sys.stderr.write(f"watching {len(found.urls)} metrics pages for {seconds:g} s\n")
    return sampled(found.urls, seconds)


def _limits(found: Target) -> dict[AnyEntity, dict[str, float]]:
    admin = Onlooker(found.bootstrap, found.security)
    try:
        return admin.quotas()
    finally:
        admin.close()
