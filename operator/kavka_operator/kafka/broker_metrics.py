"""What a broker's metrics page tells that Kafka's admin protocol does not: who uses how much, and what came and went.

Names are those of Kavka's page; `kafka_server_produce_byte_rate` and the like are also what Kafka's own figures are
usually called, so that another broker's page tells what it can. What a page does not tell is None or absent, never 0.
"""

import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.client import HTTPException

from prometheus_client.parser import text_string_to_metric_families

from kavka_broker.core.quota.entity import QuotaKey

TIMEOUT_SECONDS = 2.0
PAGE_BYTES_MAX = 16 * 1024 * 1024
PAGES_AT_ONCE_MAX = 8

PRODUCE, FETCH = "produce", "fetch"
REQUEST, MUTATION = "request", "controller_mutation"
RATES = {"kafka_server_produce_byte_rate": PRODUCE, "kafka_server_fetch_byte_rate": FETCH}
OTHER_RATES = {
    "kafka_server_request_request_time": REQUEST,
    "kafka_server_controllermutation_mutation_rate": MUTATION,
}
BYTES = "kavka_client_bytes_total"
LIMIT = "kavka_client_quota_limit_bytes_per_second"
OTHER_LIMITS = {  # with the factor that makes them those of Kafka's keys
    "kavka_client_quota_limit_loop_ratio": (REQUEST, 100.0),
    "kavka_client_quota_limit_mutations_per_second": (MUTATION, 1.0),
}
THROTTLED = "kavka_client_throttle_seconds_total"
DEMAND = "kavka_client_demand_bytes_per_second"
TOPIC_IN = "kafka_server_brokertopicmetrics_bytesin_total"
TOPIC_OUT = "kafka_server_brokertopicmetrics_bytesout_total"
RECEIVED, SENT = "kavka_network_received_bytes_total", "kavka_network_sent_bytes_total"
CONNECTIONS, WAITING = "kavka_connections", "kavka_connections_throttled"
BROKER = "kavka_broker_info"
QUOTA_LIMIT, QUOTA_USAGE = "kavka_quota_limit", "kavka_quota_usage"
QUOTA_SHARES, QUOTA_HELD = "kavka_quota_shares", "kavka_quota_throttled_seconds_total"
QUOTA_TYPES: Mapping[str, str] = {  # of Kafka's keys, as the pages call them
    QuotaKey.PRODUCER_BYTE_RATE: PRODUCE,
    QuotaKey.CONSUMER_BYTE_RATE: FETCH,
    QuotaKey.REQUEST_PERCENTAGE: REQUEST,
    QuotaKey.CONTROLLER_MUTATION_RATE: MUTATION,
    QuotaKey.CONNECTION_CREATION_RATE: "connection_creation",
}
OF_QUOTA = {  # with the field of `QuotaFigures`
    QUOTA_LIMIT: "limit",
    QUOTA_USAGE: "usage",
    QUOTA_SHARES: "shares",
    QUOTA_HELD: "throttled_seconds",
    "kavka_quota_observed_limit": "observed_limit",
    "kavka_quota_observed_usage": "observed_usage",
    "kavka_quota_observed_throttled_seconds_total": "observed_seconds",
}
SHARE_RECORDS = "kavka_share_group_records_total"
SHARE_EVENTS = ("redelivered", "archived")
SHARE_OLDEST = "kavka_share_group_oldest_record_seconds"
WANTED = (
    *(*RATES, *OTHER_RATES, *OTHER_LIMITS, BYTES, LIMIT, THROTTLED, DEMAND),
    *(TOPIC_IN, TOPIC_OUT, RECEIVED, SENT, CONNECTIONS, WAITING, BROKER),
    *OF_QUOTA,
    *(SHARE_RECORDS, SHARE_OLDEST),
)


@dataclass(frozen=True, slots=True, order=True)
class ClientKey:
    """Clients that count together on a page, and for what: produce or fetch."""

    user: str
    client_id: str
    kind: str


@dataclass(slots=True)
class ClientFigures:
    """The figures of one client on one broker. `source` describes the entity whose limit applies.

    Rate and limit are in the unit of Kafka's key: bytes, per cent of the loop's time, or mutations a second.
    """

    rate: float | None = None
    limit: float | None = None
    level: int | None = None
    source: str = ""
    bytes_total: float | None = None
    throttled_seconds: float | None = None
    demand: float | None = None


@dataclass(slots=True)
class QuotaFigures:
    """The figures of one configured quota on one broker: the usage is that of the client that uses most of it."""

    limit: float | None = None
    usage: float | None = None
    shares: float | None = None
    throttled_seconds: float | None = None
    observed_limit: float | None = None
    observed_usage: float | None = None
    observed_seconds: float | None = None


@dataclass(slots=True)
class ShareFigures:
    """The figures of one share group in one topic, of the partitions that a broker leads and members fetch from.

    `redelivered` and `archived` count since the broker began to serve the group; the age of the oldest record that the
    group is not done with is 0 where none waits.
    """

    oldest_seconds: float | None = None
    redelivered: float | None = None
    archived: float | None = None


@dataclass(slots=True)
class Page:
    """The figures of one broker's metrics page. Quotas stand by the words for their entity and their kind, shares by
    group and topic.
    """

    node: int | None = None
    clients: dict[ClientKey, ClientFigures] = field(default_factory=dict)
    quotas: dict[tuple[str, str], QuotaFigures] = field(default_factory=dict)
    topics_in: dict[str, float] = field(default_factory=dict)
    topics_out: dict[str, float] = field(default_factory=dict)
    totals: dict[str, float] = field(default_factory=dict)
    shares: dict[tuple[str, str], ShareFigures] = field(default_factory=dict)

    def client(self, labels: Mapping[str, str], kind: str) -> ClientFigures:
        """The figures of a client, new where it was not named before."""
        key = ClientKey(labels.get("user", ""), labels.get("client_id", ""), kind)
        return self.clients.setdefault(key, ClientFigures())


def shares_of(pages: Iterable[Page]) -> dict[tuple[str, str], ShareFigures]:
    """The figures of share groups by group and topic, over these pages: sums, and the greatest age."""
    found: dict[tuple[str, str], list[ShareFigures]] = {}
    for page in pages:
        for key, figures in page.shares.items():
            found.setdefault(key, []).append(figures)
    return {key: together(parts) for key, parts in found.items()}


def together(parts: Iterable[ShareFigures]) -> ShareFigures:
    """The figures of a share group over several parts of it: sums, and the greatest age."""
    found = list(parts)
    return ShareFigures(
        _join(max, (part.oldest_seconds for part in found)),
        _join(sum, (part.redelivered for part in found)),
        _join(sum, (part.archived for part in found)),
    )


def _join(join: Callable[[list[float]], float], values: Iterable[float | None]) -> float | None:
    told = [value for value in values if value is not None]
    return join(told) if told else None


def growth(now: ClientFigures, before: ClientFigures | None, seconds: float) -> float | None:
    """The bytes a second that were counted in this time; None where they are not told, or were counted from 0 again."""
    if before is None or now.bytes_total is None or before.bytes_total is None or seconds <= 0:
        return None
    return (now.bytes_total - before.bytes_total) / seconds if now.bytes_total >= before.bytes_total else None


def fetch_page(url: str) -> Page | None:
    """The figures at a URL, or None where nobody answers with a metrics page."""
    try:
        return read_page(fetch_text(url))
    except (OSError, HTTPException, ValueError):
        return None


def fetch_text(url: str) -> str:
    """The page at a URL. Raises OSError, HTTPException and, for what is no URL, ValueError."""
    with urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS) as answer:  # noqa: S310 - the caller's own URL
        text: bytes = answer.read(PAGE_BYTES_MAX)
    return text.decode(errors="replace")


def read_pages(urls: Sequence[str], read: Callable[[str], Page | None] = fetch_page) -> dict[str, Page]:
    """The metrics pages that answer, by the id of their broker, or by their URL where they do not tell it."""
    if not urls:
        return {}
    with ThreadPoolExecutor(min(len(urls), PAGES_AT_ONCE_MAX)) as pool:
        found = zip(urls, pool.map(read, urls), strict=True)
        return {str(page.node) if page.node is not None else url: page for url, page in found if page is not None}


def url_of(address: str) -> str:
    """The URL of a metrics page from `HOST:PORT`, or a URL as it is. Raises ValueError."""
    if not address:
        raise ValueError("an address is empty")
    if "://" not in address:
        return f"http://{address}" + ("" if "/" in address else "/metrics")
    if not address.startswith(("http://", "https://")):
        raise ValueError(f'"{address}" is neither HOST:PORT nor a URL of http or https')
    return address


def read_page(text: str) -> Page:
    """The figures of a metrics page. Raises ValueError where it is none."""
    page = Page()
    for name, labels, value in _samples(text):
        if name in RATES or name in OTHER_RATES:
            page.client(labels, RATES.get(name) or OTHER_RATES[name]).rate = value
        elif name in OTHER_LIMITS:
            kind, factor = OTHER_LIMITS[name]
            _note_limit(page.client(labels, kind), labels, value * factor)
        elif name in {BYTES, LIMIT, THROTTLED, DEMAND}:
            _note_client(page, name, labels, value)
        elif name in {TOPIC_IN, TOPIC_OUT} and (topic := labels.get("topic")):
            (page.topics_in if name == TOPIC_IN else page.topics_out)[topic] = value
        elif name in {RECEIVED, SENT, CONNECTIONS, WAITING}:
            page.totals[name] = page.totals.get(name, 0.0) + value
        elif name in OF_QUOTA:
            _note_quota(page, name, labels, value)
        elif name in {SHARE_RECORDS, SHARE_OLDEST}:
            _note_share(page, name, labels, value)
        elif name == BROKER:
            page.node = int(labels["node_id"])
    return page


def _note_client(page: Page, name: str, labels: Mapping[str, str], value: float) -> None:
    client = page.client(labels, labels.get("quota_type", ""))
    if name == BYTES:
        client.bytes_total = value
    elif name == DEMAND:
        client.demand = value
    elif name == THROTTLED:
        client.throttled_seconds = value
    else:
        _note_limit(client, labels, value)


def _note_limit(client: ClientFigures, labels: Mapping[str, str], limit: float) -> None:
    client.limit, client.source = limit, labels.get("source", "")
    client.level = int(labels["level"]) if labels.get("level", "").isdecimal() else None


def _note_quota(page: Page, name: str, labels: Mapping[str, str], value: float) -> None:
    key = labels.get("entity", ""), labels.get("quota_type", "")
    setattr(page.quotas.setdefault(key, QuotaFigures()), OF_QUOTA[name], value)


def _note_share(page: Page, name: str, labels: Mapping[str, str], value: float) -> None:
    figures = page.shares.setdefault((labels.get("group", ""), labels.get("topic", "")), ShareFigures())
    if name == SHARE_OLDEST:
        figures.oldest_seconds = value
    elif (event := labels.get("event")) in SHARE_EVENTS:
        setattr(figures, event, value)


def _samples(text: str) -> Iterator[tuple[str, Mapping[str, str], float]]:
    """Samples of the families that are read. Others may be many, and are not parsed."""
    for family in text_string_to_metric_families("\n".join(_wanted(text.splitlines())) + "\n"):
        for sample in family.samples:
            yield sample.name, sample.labels, sample.value


def _wanted(lines: Iterable[str]) -> Iterator[str]:
    return (line for line in lines if line.startswith(WANTED))
