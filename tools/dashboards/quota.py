"""Quota & throttle: which quota is near its limit, whom it holds, and who uses how much."""

from typing import Final

from tools.dashboards.broker import MARKS
from tools.dashboards.panels import Dashboard, Panel, Query, Row, Variable, number

NODES: Final = 'cluster="$cluster", instance=~"$broker"'
QUOTAS: Final = f'{NODES}, entity=~"$entity"'
CLIENTS: Final = f'{NODES}, user=~"$user", client_id=~"$client"'
CLIENT: Final = "{{user}} / {{client_id}}"
QUOTA: Final = "{{quota_type}}: {{entity}} on {{instance}}"
BY_CLIENT: Final = "sum by (user, client_id, quota_type)"
AT_BROKER: Final = "by (instance, user, client_id, quota_type)"
LIMITS: Final = f"kavka_client_quota_limit_bytes_per_second{{{CLIENTS}}}"
RATES: Final = f"rate(kavka_client_bytes_total{{{CLIENTS}}}[$__rate_interval])"
USED: Final = f"sum {AT_BROKER} ({RATES}) / (max {AT_BROKER} ({LIMITS}) > 0)"


def used_most(quota_type: str) -> Query:
    """The clients that move most bytes."""
    selected = f'{{{CLIENTS}, quota_type="{quota_type}"}}'
    rate = f"rate(kavka_client_bytes_total{selected}[$__rate_interval])"
    return Query(f"topk(10, sum by (user, client_id) ({rate}))", CLIENT)


NOW: Final = Row(
    "Now",
    (
        number(
            "Quotas near their limit",
            "Configured quotas that are used by more than 90 %, counted on each broker.",
            f"count(kavka_quota_usage{{{QUOTAS}}} / (kavka_quota_limit{{{QUOTAS}}} > 0) > 0.9) or vector(0)",
            red_from=1,
        ),
        number(
            "Quotas that hold somebody",
            "Configured quotas that hold at least one connection back, counted on each broker.",
            f"count(kavka_quota_throttled_connections{{{QUOTAS}}} > 0) or vector(0)",
            red_from=1,
        ),
        number(
            "Connections held",
            "Connections that are muted because of a quota.",
            f"sum(kavka_connections_throttled{{{NODES}}})",
        ),
        number(
            "Quotas without effect",
            "Configured quotas of which another one wins for all clients.",
            f"count(max by (entity, quota_type) (kavka_quota_shadowed{{{QUOTAS}}}) == 1) or vector(0)",
            red_from=1,
        ),
        number(
            "Quotas",
            "Configured quotas, each key apart.",
            f"count(max by (entity, quota_type) (kavka_quota_limit{{{QUOTAS}}}))",
        ),
        number(
            "Series left out",
            "Quotas, topics and partitions beyond the bounds of /metrics.",
            f"sum(kavka_series_omitted{{{NODES}}})",
            red_from=1,
        ),
    ),
)

CONFIGURED: Final = Row(
    "Configured quotas",
    (
        Panel(
            "Used, of the limit",
            "How close each quota is to its limit, on the broker where it is closest. A default is as close as the "
            "client that uses most of it.",
            (
                Query(
                    "topk(20, max by (entity, quota_type) "
                    f"(kavka_quota_usage{{{QUOTAS}}} / (kavka_quota_limit{{{QUOTAS}}} > 0)))",
                    "{{quota_type}}: {{entity}}",
                ),
            ),
            "percentunit",
            "bargauge",
            12,
            0.9,
            1,
        ),
        Panel(
            "Share of the time in which somebody was held",
            "1 is all of the time: at least one connection was always held back by this quota.",
            (
                Query(
                    f"topk(10, rate(kavka_quota_throttled_seconds_total{{{QUOTAS}}}[$__rate_interval]))",
                    QUOTA,
                ),
            ),
            "percentunit",
            width=12,
            most=1,
        ),
        Panel(
            "Produce: usage and limit",
            "Bytes a second as the quota measures them, and what it allows.",
            (
                Query(f'kavka_quota_usage{{{QUOTAS}, quota_type="produce"}}', "used: {{entity}} on {{instance}}"),
                Query(f'kavka_quota_limit{{{QUOTAS}, quota_type="produce"}}', "limit: {{entity}} on {{instance}}"),
            ),
            "Bps",
        ),
        Panel(
            "Fetch: usage and limit",
            "Bytes a second as the quota measures them, and what it allows.",
            (
                Query(f'kavka_quota_usage{{{QUOTAS}, quota_type="fetch"}}', "used: {{entity}} on {{instance}}"),
                Query(f'kavka_quota_limit{{{QUOTAS}, quota_type="fetch"}}', "limit: {{entity}} on {{instance}}"),
            ),
            "Bps",
        ),
        Panel(
            "Time on the loop: usage and limit",
            "Percent of the one thread that serves all requests (request_percentage).",
            (
                Query(f'kavka_quota_usage{{{QUOTAS}, quota_type="request"}}', "used: {{entity}} on {{instance}}"),
                Query(f'kavka_quota_limit{{{QUOTAS}, quota_type="request"}}', "limit: {{entity}} on {{instance}}"),
            ),
            "percent",
        ),
        Panel(
            "Partitions created and deleted: usage and limit",
            "Partitions a second, on the active controller (controller_mutation_rate).",
            (
                Query(f'kavka_quota_usage{{{QUOTAS}, quota_type="controller_mutation"}}', "used: {{entity}}"),
                Query(f'kavka_quota_limit{{{QUOTAS}, quota_type="controller_mutation"}}', "limit: {{entity}}"),
            ),
            "cps",
        ),
        Panel(
            "Only observed: used, of the limit",
            "Limits that hold nobody back, and what they would let through.",
            (Query(f"kavka_quota_observed_usage{{{QUOTAS}}} / (kavka_quota_observed_limit{{{QUOTAS}}} > 0)", QUOTA),),
            "percentunit",
        ),
        Panel(
            "Only observed: share of the time in which it would hold somebody",
            "What a limit would do if it were enforced.",
            (Query(f"rate(kavka_quota_observed_throttled_seconds_total{{{QUOTAS}}}[$__rate_interval])", QUOTA),),
            "percentunit",
            most=1,
        ),
        Panel(
            "Addresses: new connections",
            "Connections a second of addresses that have a limit (connection_creation_rate), of the last to come.",
            (Query(f"topk(10, kavka_address_connection_rate{{{NODES}}})", "{{ip}} to {{instance}}"),),
            "cps",
        ),
        Panel(
            "Connections held",
            "Connections that each quota holds back.",
            (Query(f"kavka_quota_throttled_connections{{{QUOTAS}}}", QUOTA),),
        ),
    ),
)

BUSY: Final = Row(
    "Clients",
    (
        Panel(
            "Clients under a byte quota",
            "Which quota limits each client, what it uses at the broker where that is most, and how long it is held.",
            (
                Query(f"max by (user, client_id, quota_type, source) ({LIMITS})", "Limit", "Bps"),
                Query(f"{BY_CLIENT} ({RATES})", "Rate", "Bps"),
                Query(
                    f"max by (user, client_id, quota_type) ({USED})",
                    "Used",
                    "percentunit",
                ),
                Query(
                    f"{BY_CLIENT} (rate(kavka_client_throttle_seconds_total{{{CLIENTS}}}[$__rate_interval]))",
                    "Throttled",
                    "s",
                ),
            ),
            kind="table",
            width=24,
        ),
        Panel("Produce: most bytes", "With a quota or without.", (used_most("produce"),), "Bps", width=12),
        Panel("Fetch: most bytes", "With a quota or without.", (used_most("fetch"),), "Bps", width=12),
        Panel(
            "Most time on the loop",
            "How much of the thread that serves all requests each client has; 1 is all of one broker.",
            (
                Query(
                    "topk(10, sum by (user, client_id) "
                    f"(rate(kavka_client_loop_seconds_total{{{CLIENTS}}}[$__rate_interval])))",
                    CLIENT,
                ),
            ),
            "percentunit",
        ),
        Panel(
            "Waiting for turns of others",
            "Seconds a second that connections of a client wait until others have had their turns on the loop.",
            (
                Query(
                    "topk(10, sum by (user, client_id) "
                    f"(rate(kavka_client_waited_seconds_total{{{CLIENTS}}}[$__rate_interval])))",
                    CLIENT,
                ),
            ),
            "s",
        ),
        Panel(
            "Held back",
            "Seconds a second that connections of a client wait; above 1 several of them wait at once.",
            (
                Query(
                    f"topk(10, {BY_CLIENT} (rate(kavka_client_throttle_seconds_total{{{CLIENTS}}}[$__rate_interval])))",
                    f"{{{{quota_type}}}}: {CLIENT}",
                ),
            ),
            "s",
        ),
        Panel(
            "Throttled requests",
            "Requests whose client was told to wait.",
            (
                Query(
                    f"topk(10, {BY_CLIENT} "
                    f"(rate(kavka_client_throttled_requests_total{{{CLIENTS}}}[$__rate_interval])))",
                    f"{{{{quota_type}}}}: {CLIENT}",
                ),
            ),
            "reqps",
        ),
        Panel(
            "Demand under a quota",
            "What a client would use without its quota: its rate over the share of the time in which it was not held.",
            (
                Query(
                    f"topk(10, {BY_CLIENT} (kavka_client_demand_bytes_per_second{{{CLIENTS}}}))",
                    f"{{{{quota_type}}}}: {CLIENT}",
                ),
            ),
            "Bps",
        ),
        Panel(
            "Told to wait: 99th percentile",
            "throttle_time_ms of the throttled requests.",
            (
                Query(
                    "histogram_quantile(0.99, sum by (le, quota_type) "
                    f"(rate(kavka_throttle_duration_seconds_bucket{{{NODES}}}[$__rate_interval])))",
                    "{{quota_type}}",
                ),
            ),
            "s",
        ),
    ),
)

QUOTA_AND_THROTTLE: Final = Dashboard(
    "kavka-quota",
    "Kavka: quota & throttle",
    "Which quota is near its limit, whom it holds back, and who uses how much.",
    (
        Variable("cluster", "label_values(kavka_broker_info, cluster)", is_many=False),
        Variable("broker", 'label_values(kavka_broker_info{cluster="$cluster"}, instance)'),
        Variable("entity", 'label_values(kavka_quota_limit{cluster="$cluster"}, entity)'),
        Variable("user", 'label_values(kavka_client_bytes_total{cluster="$cluster"}, user)'),
        Variable("client", 'label_values(kavka_client_bytes_total{cluster="$cluster"}, client_id)'),
    ),
    (NOW, CONFIGURED, BUSY),
    MARKS,
)
