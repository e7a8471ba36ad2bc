"""`kavka explain quota`: which quota holds for a client or an address, and why others do not.

Limits are what the running cluster describes; what each broker lets the client use stands on its metrics page.
"""

import time
from collections.abc import Iterator, Mapping

from kavka_broker.core.quota.resolve import Share
from kavka_operator.api.quantity import spell
from kavka_operator.api.quota import AnyEntity
from kavka_operator.api.table import aligned
from kavka_operator.cli.targets import Asked, Target, target
from kavka_operator.cli.words import CommandError, complain, say
from kavka_operator.domain.entities import entity_text
from kavka_operator.kafka.admin import AdminError
from kavka_operator.kafka.figures import QUOTA_TYPES, ClientKey, Page, read_pages
from kavka_operator.kafka.onlooking import Onlooker
from kavka_operator.quota.explaining import Explanation, Limits, explain, explain_address, unlimited
from kavka_operator.top.units import rate

ANYBODY = "ANONYMOUS"
NOT_TOLD = "not told"


def explain_quota(asked: Asked, user: str | None, client_id: str | None, ip: str | None) -> int:
    """Print which quotas hold for a client, for an address, or both; the exit code."""
    try:
        found = target(asked)
        limits, pages = _ask(found)
    except (CommandError, AdminError) as error:
        return complain(error)
    now_ms = int(time.time() * 1000)
    if ip is None or user is not None or client_id is not None:
        who = ANYBODY if user is None else user, client_id or ""
        say("\n".join(of_client(found, pages, who, explain(limits, *who, now_ms))))
    if ip is not None:
        say("\n".join(of_address(found, ip, explain_address(limits, ip, now_ms))))
    return 0


def of_client(
    found: Target, pages: Mapping[str, Page], who: tuple[str, str], explanations: list[Explanation]
) -> Iterator[str]:
    """The lines about a client."""
    user, client_id = who
    yield f'user "{user}", client id "{client_id}", on each broker of {found.name}:'
    if not any(not explanation.is_observed for explanation in explanations):
        yield "  nothing limits this client"
    for explanation in explanations:
        yield "\n" + explained(explanation, found.owners)
        if not explanation.is_observed:
            yield from _indented(_usage(explanation, found, pages))
    if explanations and (free := unlimited(explanations)):
        yield f"\nno limit: {', '.join(free)}"


def of_address(found: Target, ip: str, explanation: Explanation | None) -> Iterator[str]:
    """The lines about an address."""
    yield f"address {ip}, on each broker of {found.name}:"
    yield "  nothing limits this address" if explanation is None else "\n" + explained(explanation, found.owners)


def explained(explanation: Explanation, owners: Mapping[AnyEntity, str]) -> str:
    """The text for one quota key: the limit that holds, and all that could, the most specific first."""
    winner, hidden = explanation.winner, explanation.hidden
    assert winner.limit is not None, "what wins is set"
    rows = [["", "LEVEL", "ENTITY", "LIMIT", "RESOURCE", "WHY"]]
    for choice in explanation.choices:
        limit = "-" if choice.limit is None else spell(choice.limit)
        mark = "->" if choice is winner else ""
        owner = owners.get(choice.entity, "") if choice.limit is not None else ""
        rows.append([mark, choice.level, entity_text(choice.entity), limit, owner, choice.why])
    observed = "observed: " if explanation.is_observed else ""
    head = f"{observed}{explanation.key} {spell(winner.limit)}: {_where(winner.level)}"
    behind = f", hides {', '.join(map(entity_text, hidden))}" if hidden else ""
    return "\n".join([head + behind, *_indented(aligned(rows).splitlines())])


def _where(level: str) -> str:
    number, _, words = level.partition(" ")
    return f"level {number}, {words}" if number.isdecimal() else level


def _indented(lines: list[str]) -> Iterator[str]:
    return (f"  {line}".rstrip() for line in lines)


def _usage(explanation: Explanation, found: Target, pages: Mapping[str, Page]) -> list[str]:
    """What the client uses of the limit at each broker, as far as the metrics pages tell."""
    if not found.urls:
        return ["", "its usage is not told by Kafka's API; name the brokers' metrics pages with --metrics"]
    rows = [["BROKER", "LIMIT", "USES", "USED", "HELD"]]
    for broker, page in sorted(pages.items()):
        rows.append([broker, *_cells(explanation, page)])
    silent = len(found.urls) - len(pages)
    return ["", *aligned(rows).splitlines(), *([f"metrics pages that do not answer: {silent}"] if silent else [])]


def _cells(explanation: Explanation, page: Page) -> list[str]:
    """The limit on a broker, what the client uses of it, and for how long it was held since the broker started."""
    kind = QUOTA_TYPES[explanation.key]
    figures = page.clients.get(_key(explanation.share, kind))
    limit = _limit(explanation, page, kind) if figures is None or figures.limit is None else figures.limit
    allowed = spell(limit) if limit is not None else NOT_TOLD
    if figures is None:
        return [allowed, "not seen", "", ""]
    uses = rate(figures.rate) if figures.rate is not None else NOT_TOLD
    used = f"{figures.rate / limit:.0%}" if limit and figures.rate is not None else ""
    held = f"{figures.throttled_seconds:.0f}s" if figures.throttled_seconds is not None else NOT_TOLD
    return [allowed, uses, used, held]


def _limit(explanation: Explanation, page: Page, kind: str) -> float | None:
    quota = page.quotas.get((str(explanation.winner.entity), kind))
    return quota.limit if quota is not None else None


def _key(counted: Share | None, kind: str) -> ClientKey:
    assert counted is not None, "clients share what limits them"
    return ClientKey(counted.user or "", counted.client_id or "", kind)


def _ask(found: Target) -> tuple[Limits, Mapping[str, Page]]:
    admin = Onlooker(found.bootstrap)
    try:
        return admin.quotas(), read_pages(found.urls)
    finally:
        admin.close()
