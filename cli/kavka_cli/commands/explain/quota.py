"""`kavka explain quota`: which quota holds for a client, an address or a topic, and why others do not.

Limits are what the running cluster describes; what each broker lets the client use stands on its metrics page.
"""

import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from kavka_broker.core.quota.entity import IpEntity
from kavka_broker.core.quota.resolve import is_address, seen
from kavka_cli.local_clusters import add_state_directory
from kavka_cli.output import CommandError, complain, say
from kavka_cli.target import Target, add_target, find_target, target_options
from kavka_cli.topic_limits import of_topic
from kavka_operator.api.printer_columns import aligned
from kavka_operator.api.quantity import spell
from kavka_operator.api.quota import AnyEntity, ClientQuota
from kavka_operator.domain.quota_entities import as_set, entity_text
from kavka_operator.domain.units import amount
from kavka_operator.kafka.admin import AdminError
from kavka_operator.kafka.broker_metrics import QUOTA_TYPES, ClientKey, Page, read_pages
from kavka_operator.kafka.offsets_and_lag import Onlooker
from kavka_operator.quota.explanation import Explanation, Limits, explain, explain_address, unlimited

HELP = "Say which of the eight levels of quotas wins for a client, what it hides, and how much of it is used."
ANYBODY = "ANONYMOUS"
NOT_TOLD = "not told"


@dataclass(frozen=True, slots=True)
class Told:
    """The answers of a cluster: its limits, its brokers and their metrics pages, as far as these answer."""

    limits: Limits
    brokers: tuple[int, ...]
    pages: Mapping[str, Page]
    callbacks: Mapping[int, str] = field(default_factory=dict)
    """The class that decides instead of Kafka's levels, of each broker that has one."""
    of_topic: Mapping[str, int] = field(default_factory=dict)
    """Bytes a second by the configs of the topic that is asked for."""


@dataclass(frozen=True, slots=True)
class Subject:
    """Whose limits are asked for: of a client, of an address, or of a topic; without any, of a client without names."""

    user: str | None = None
    client_id: str | None = None
    ip: str | None = None
    topic: str | None = None

    @property
    def is_client(self) -> bool:
        return self.user is not None or self.client_id is not None or (self.ip is None and self.topic is None)


def add_options(parser: ArgumentParser) -> None:
    """Add the options of `kavka explain quota`."""
    add_state_directory(parser)
    parser.add_argument("--user", help="The principal's name (ANONYMOUS).")
    parser.add_argument("--client-id", help="The client.id (empty).")
    parser.add_argument("--ip", help="An address: which limit on new connections holds for it.")
    parser.add_argument("--topic", help="A topic: which limits its config sets to all of its clients together.")
    add_target(parser)


def run(options: Namespace) -> int:
    """Print which quotas hold for a client, for an address, for a topic; the exit code."""
    subject = Subject(options.user, options.client_id, options.ip, options.topic)
    try:
        _check_address(subject.ip)
        found = find_target(target_options(options))
        told = ask(found, subject.topic)
    except (CommandError, AdminError) as error:
        return complain(error)
    now_ms = int(time.time() * 1000)
    if subject.is_client:
        user = ANYBODY if subject.user is None else subject.user
        say("\n".join(of_client(found, told, user, subject.client_id or "", now_ms)))
    if subject.ip is not None:
        say("\n".join(of_address(found, told, subject.ip, now_ms)))
    if subject.topic is not None:
        say("\n".join(of_topic(subject.topic, found.name, told.of_topic, told.pages)))
    return 0


def _check_address(ip: str | None) -> None:
    """Raises CommandError for what is no address: brokers see addresses, and no names of hosts."""
    if ip is not None and not is_address(ip):
        raise CommandError(f'--ip "{ip}" is not an address; write one as 10.0.0.1 or 2001:db8::1')


def of_client(found: Target, told: Told, user: str, client_id: str, now_ms: int) -> Iterator[str]:
    """The lines about a client."""
    by_broker = {broker: explain(told.limits, user, client_id, now_ms, broker) for broker in told.brokers}
    explanations = next(iter(by_broker.values()), [])
    yield f'user "{user}", client id "{client_id}", on each broker of {found.name}:'
    if not any(not explanation.is_observed for explanation in explanations):
        yield "  nothing limits this client"
    for explanation in explanations:
        yield "\n" + explained(explanation, found.owners)
        if not explanation.is_observed:
            held = {broker: limit_of(of_broker, explanation.key) for broker, of_broker in by_broker.items()}
            yield from _indented(_usage(explanation, held, found, told.pages))
    if explanations and (free := unlimited(explanations)):
        yield f"\nno limit: {', '.join(free)}"
    yield from _callback_words(told.callbacks)


def _callback_words(callbacks: Mapping[int, str]) -> Iterator[str]:
    """A line for each class that decides elsewhere than the metadata's quotas."""
    for name in sorted(set(callbacks.values())):
        brokers = ", ".join(str(broker) for broker in sorted(callbacks) if callbacks[broker] == name)
        yield (
            f"\nnot so on broker {brokers}: there client.quota.callback.class={name} decides on both byte rates; what"
            " it has decided stands on the broker's metrics page, with level 0"
        )


def of_address(found: Target, told: Told, ip: str, now_ms: int) -> Iterator[str]:
    """The lines about an address."""
    explanation = explain_address(told.limits, ip, now_ms, min(told.brokers, default=0))
    owners: dict[AnyEntity, ClientQuota] = {
        seen(entity): quota for entity, quota in found.owners.items() if isinstance(entity, IpEntity)
    }
    yield f"address {ip}, on each broker of {found.name}:"
    yield "  nothing limits this address" if explanation is None else "\n" + explained(explanation, owners)
    yield from _hosts(told.limits)


def _hosts(limits: Limits) -> Iterator[str]:
    """A line for each quota of a host that is named: brokers know its addresses."""
    for entity, values in limits.items():
        if isinstance(entity, IpEntity) and isinstance(entity.ip, str) and not is_address(entity.ip) and values:
            yield f'  otherwise, if it is of the host "{entity.ip}": {_amounts(values)}'


def _amounts(values: Mapping[str, float]) -> str:
    return ", ".join(f"{key} {spell(value)}" for key, value in sorted(values.items()))


def explained(explanation: Explanation, owners: Mapping[AnyEntity, ClientQuota]) -> str:
    """The text for one quota key: the limit that holds, and all that could, the most specific first."""
    winner, hidden = explanation.winner, explanation.hidden
    assert winner.limit is not None, "what wins is set"
    rows = [["", "LEVEL", "ENTITY", "LIMIT", "RESOURCE", "WHY"]]
    for choice in explanation.choices:
        limit = "-" if choice.limit is None else spell(choice.limit)
        mark = "->" if choice is winner else ""
        owner = owners.get(as_set(choice.entity)) if choice.limit is not None else None
        rows.append([mark, choice.level, entity_text(choice.entity), limit, owner.name if owner else "", choice.why])
    observed = "observed: " if explanation.is_observed else ""
    head = f"{observed}{explanation.key} {spell(winner.limit)}: {_where(winner.level)}"
    behind = f", hides {', '.join(map(entity_text, hidden))}" if hidden else ""
    return "\n".join([head + behind, *_indented(aligned(rows).splitlines())])


def _where(level: str) -> str:
    number, _, words = level.partition(" ")
    return f"level {number}, {words}" if number.isdecimal() else level


def _indented(lines: list[str]) -> Iterator[str]:
    return (f"  {line}".rstrip() for line in lines)


def limit_of(explanations: Sequence[Explanation], key: str) -> float | None:
    """The limit that holds for a key; None where none does."""
    limits = (explanation.winner.limit for explanation in explanations if explanation.key == key)
    return next(limits, None)


def _usage(
    explanation: Explanation, held: Mapping[int, float | None], found: Target, pages: Mapping[str, Page]
) -> list[str]:
    """The limit at each broker and what the client uses of it, as far as the metrics pages tell."""
    rows = [["BROKER", "LIMIT", "USES", "USED", "HELD"]]
    for broker, limit in sorted(held.items()):
        rows.append([str(broker), *_cells(explanation, limit, pages.get(str(broker)))])
    unseen = [] if found.urls else ["Kafka's API does not tell usage; name the brokers' metrics pages with --metrics"]
    return ["", *aligned(rows).splitlines(), *unseen]


def _cells(explanation: Explanation, limit: float | None, page: Page | None) -> list[str]:
    """The limit on a broker, what the client uses of it, and for how long it was held since the broker started."""
    share = explanation.share
    assert share is not None, "clients share what limits them"
    key = ClientKey(str(share.user or ""), str(share.client_id or ""), QUOTA_TYPES[explanation.key])
    allowed = spell(limit) if limit is not None else "-"
    if page is None:
        return [allowed, NOT_TOLD, NOT_TOLD, NOT_TOLD]
    figures = page.clients.get(key)
    if figures is None:
        return [allowed, "not seen", "", ""]
    uses = amount(key.kind, figures.rate) if figures.rate is not None else NOT_TOLD
    used = f"{figures.rate / limit:.0%}" if limit and figures.rate is not None else ""
    held = f"{figures.throttled_seconds:.0f}s" if figures.throttled_seconds is not None else NOT_TOLD
    return [allowed, uses, used, held]


def ask(found: Target, topic: str | None = None) -> Told:
    """Ask a cluster for its limits, and for those that the config of a topic sets. Raises AdminError."""
    admin = Onlooker(found.bootstrap, found.security)
    try:
        brokers = tuple(sorted(admin.members().brokers))
        limits = admin.topic_limits(topic) if topic is not None else {}
        return Told(admin.quotas(), brokers, read_pages(found.urls), dict(_callbacks(admin, brokers)), limits)
    finally:
        admin.close()


def _callbacks(admin: Onlooker, brokers: Sequence[int]) -> Iterator[tuple[int, str]]:
    """The callback class of each broker that has one, and tells its settings."""
    for broker in brokers:
        with suppress(AdminError):
            if (name := admin.quota_callback(broker)) is not None:
                yield broker, name
