"""Quotas: each limit with the clients that meet it. A limit that others hide has no effect, and says so."""

from collections.abc import Mapping

from kavka_broker.core.quota.entity import TopicEntity
from kavka_broker.core.quota.entity_limits import CLUSTER, OBSERVED, PREFIX, SHARE, base_key
from kavka_operator.api.quota import AnyEntity
from kavka_operator.domain import units
from kavka_operator.domain.quota_entities import as_meant, entity_text
from kavka_operator.kafka.broker_metrics import QUOTA_TYPES, Page, QuotaFigures
from kavka_operator.live_views.model import History, greatest
from kavka_operator.quota.shadows import Neighbours, level_of, shadowed_by
from kavka_operator.web_page import cells
from kavka_operator.web_page.sheet import UNTOLD, Cell, Column, Row, Sheet, Tone

COLUMNS = (
    Column("ENTITY", is_flexible=True),
    Column("LEVEL", is_number=True, rank=4),
    Column("LIMITS"),
    Column("LIMIT", is_number=True),
    Column("MOST", is_number=True, rank=3),
    Column("USED", is_number=True),
    Column("HELD", is_number=True, rank=1),
    Column("CLIENTS", is_number=True, rank=5),
    Column("HIDDEN BY", rank=2, is_flexible=True),
)

OF_TOPICS = tuple(str(TopicEntity("", each_partition=apart)).removesuffix('"') for apart in (False, True))
"""How the words for what is limited begin, where that is a topic."""


def quotas(history: History) -> Sheet:
    """The sheet of quotas, a row for each limit."""
    limits = history.now.quotas
    if limits is None:
        return Sheet("quotas", COLUMNS, (), 5, "this cluster does not tell its quotas")
    near = Neighbours(limits)
    rows = [_row(history, near, entity, key, values) for entity, values in limits.items() for key in _amounts(values)]
    rows += [_row_of_topic(history, *name) for name in _of_topics(history)]
    return Sheet("quotas", COLUMNS, tuple(rows), 5, "" if history.now.pages else cells.NO_PAGES)


def _row(history: History, near: Neighbours, entity: AnyEntity, key: str, values: Mapping[str, float]) -> Row:
    budget = values.get(CLUSTER + key)
    limit = values[key] if budget is None else budget
    meant, level = as_meant(entity, values), level_of(entity)
    text = units.printable(entity_text(meant))
    hidden = [other for other in shadowed_by(entity, near) if key in other.keys and other.clients == "All"]
    return Row(
        f"{text}\0{key}",
        (
            Cell(text, text, Tone.FAINT if hidden else Tone.NAME),
            Cell(str(level), level) if level else Cell(""),
            Cell(_words(key) if budget is None else f"{_words(key)}, cluster", key),
            Cell(units.amount(_kind(key), limit), limit),
            *_usage(history, meant, key, budget),
            Cell(", ".join(units.printable(other.entity) for other in hidden), None, Tone.NEAR),
        ),
    )


def _of_topics(history: History) -> list[tuple[str, str]]:
    """The limits that topics set to all of their clients, by entity and kind: only metrics pages tell of them."""
    found = {name for page in history.now.pages.values() for name in page.quotas}
    return sorted(name for name in found if name[0].startswith(OF_TOPICS))


def _row_of_topic(history: History, entity: str, kind: str) -> Row:
    quotas = (page.quotas[entity, kind] for page in history.now.pages.values() if (entity, kind) in page.quotas)
    limit, text = greatest(quota.limit for quota in quotas), units.printable(entity)
    cells_of_use = _usage(history, entity, kind, None)
    return Row(
        f"{text}\0{kind}",
        (
            Cell(text, text, Tone.NAME),
            Cell(""),
            Cell(kind, kind),
            Cell(units.amount(kind, limit), limit) if limit is not None else UNTOLD,
            *cells_of_use,
            Cell(""),
        ),
    )


def _amounts(values: Mapping[str, float]) -> list[str]:
    """The keys that are amounts; of Kavka's own the moments, and the mark of a prefix, are not.

    A budget of the whole cluster stands in the row of Kafka's key, which it divides among the brokers.
    """
    amounts = (key for key in values if not key.endswith("_ms") and key != PREFIX)
    return sorted(key for key in amounts if not _is_of_a_budget(key) or not _has_a_row(base_key(key), values))


def _is_of_a_budget(key: str) -> bool:
    return key.startswith(CLUSTER) or SHARE.fullmatch(key) is not None


def _has_a_row(key: str, values: Mapping[str, float]) -> bool:
    """Whether a row shows the budget of which this is the limit."""
    return key in values and CLUSTER + key in values


def _kind(key: str) -> str:
    """The kind of what the key counts; keys of Kavka's own end with the one of Kafka's that they are about."""
    return next((kind for known, kind in QUOTA_TYPES.items() if key.endswith(known)), key)


def _words(key: str) -> str:
    return QUOTA_TYPES.get(key, key).removeprefix("kavka_").replace("_", " ")


def _usage(history: History, entity: AnyEntity | str, key: str, budget: float | None) -> tuple[Cell, ...]:
    """Usage, used, held and clients, as the metrics pages tell them: of a budget, of all brokers together; of a limit
    that is observed, what it would be.
    """
    kind = QUOTA_TYPES.get(key.removeprefix(OBSERVED), key)
    now, before = (
        _figures(look.pages, key, str(entity), kind) if look else {} for look in (history.now, history.before)
    )
    used = greatest(quota.usage / quota.limit for quota in now.values() if quota.usage is not None and quota.limit)
    usage = greatest(quota.usage for quota in now.values())
    if budget and usage is not None:
        usage = sum(quota.usage for quota in now.values() if quota.usage is not None)
        used = usage / budget
    held = greatest(
        history.per_second(quota.throttled_seconds, before[node].throttled_seconds)
        for node, quota in now.items()
        if node in before
    )
    return (
        Cell(units.amount(kind, usage), usage) if usage is not None else UNTOLD,
        cells.usage(used, is_limited=True),
        cells.held(None if held is None else min(held, 1.0), awaited=bool(now) and history.before is None),
        cells.number(greatest(quota.shares for quota in now.values())),
    )


def _figures(pages: Mapping[str, Page], key: str, entity: str, kind: str) -> dict[str, QuotaFigures]:
    """The figures of a limit by broker, as far as its page has them."""
    found = {node: page.quotas[entity, kind] for node, page in pages.items() if (entity, kind) in page.quotas}
    if not key.startswith(OBSERVED):
        return found
    return {
        node: QuotaFigures(quota.observed_limit, quota.observed_usage, None, quota.observed_seconds)
        for node, quota in found.items()
    }
