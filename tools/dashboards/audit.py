"""Audit: what happens, who is refused, does the trail keep it all, and is it as it was written."""

from typing import Final

from tools.dashboards.broker import MARKS
from tools.dashboards.panels import Dashboard, Panel, Query, Row, Variable, number

NODES: Final = 'cluster="$cluster", instance=~"$broker"'
CLUSTER: Final = 'cluster="$cluster"'
NODE: Final = "{{instance}}"
TOLD: Final = "kavka_audit_told_total"


def told(kinds: str, by: str = "kind") -> str:
    """How often something of these kinds happens in a second."""
    return f'sum by ({by}) (rate({TOLD}{{{NODES}, kind=~"{kinds}"}}[$__rate_interval]))'


NOW: Final = Row(
    "Is everything told?",
    (
        number(
            "Events dropped",
            "Events that had no room, in the time shown; each chain says where.",
            f'sum(increase(kavka_audit_events_total{{{NODES}, result="dropped"}}[$__range]))',
            red_from=1,
        ),
        number(
            "Nodes that refuse",
            "Nodes that refuse data and changes, as the trail has no room (kavka.audit.failure.policy=reject).",
            f"sum(kavka_audit_refusing{{{NODES}}})",
            red_from=1,
        ),
        number(
            "Last write",
            "How long ago the trail of a node was last written, of the node that waits longest. It is at least once a"
            " minute.",
            f"max(time() - kavka_audit_last_written_timestamp_seconds{{{NODES}}})",
            red_from=180,
            unit="s",
        ),
        number(
            "Room used",
            "By events that wait to be written, of the node with most.",
            f"max(kavka_audit_buffer_usage_ratio{{{NODES}}})",
            red_from=0.5,
            unit="percentunit",
        ),
        number(
            "Chains not sound",
            "Chains that are damaged, or that nothing vouches for, by the last `kavka audit verify --metrics-file`.",
            f'sum(kavka_audit_chains{{{CLUSTER}, state=~"unsigned|damaged"}})',
            red_from=1,
        ),
        number(
            "Last verified",
            "How long ago that was.",
            f"time() - max(kavka_audit_verified_timestamp_seconds{{{CLUSTER}}})",
            red_from=172_800,
            unit="s",
        ),
    ),
)
REFUSED: Final = Row(
    "Who is let in, and who is refused",
    (
        Panel(
            "Refusals",
            "Operations that access rules or limits have refused, by node; who and what is in the trail.",
            (Query(told("denied", "instance"), NODE),),
            "ops",
        ),
        Panel(
            "Events about refusals",
            "How fast refusals of a principal fill the trail; 200 of one second are told apart.",
            (
                Query(
                    f"sum by (principal) (rate(kavka_audit_refusal_events_total{{{NODES}}}[$__rate_interval]))",
                    "{{principal}}",
                ),
            ),
            "ops",
        ),
        Panel("Failed logins", "By node.", (Query(told("login_failed", "instance"), NODE),), "ops"),
        Panel("Logins", "By password, token or certificate.", (Query(told("login", "instance"), NODE),), "ops"),
    ),
)
HAPPENING: Final = Row(
    "What happens",
    (
        Panel(
            "Changes",
            "Topics, configs, rules, quotas, users, replicas, by node.",
            (Query(told("change", "instance"), NODE),),
            "ops",
        ),
        Panel("Use", "Batches written, and answers read.", (Query(told("read|write"), "{{kind}}"),), "ops"),
        Panel(
            "Throttling", "Delays that quotas and limits give.", (Query(told("throttled", "instance"), NODE),), "ops"
        ),
    ),
)
TRAIL: Final = Row(
    "The trail",
    (
        Panel(
            "Events",
            "Events that the topic has taken, and those dropped for lack of room.",
            (
                Query(
                    f"sum by (result) (rate(kavka_audit_events_total{{{NODES}}}[$__rate_interval]))",
                    "{{result}}",
                ),
            ),
            "ops",
        ),
        Panel(
            "Waiting",
            "Events that wait to be written.",
            (Query(f"kavka_audit_events_waiting{{{NODES}}}", NODE),),
        ),
        Panel(
            "Room used",
            "By events that wait to be written; at 1 events are dropped, or clients refused.",
            (Query(f"kavka_audit_buffer_usage_ratio{{{NODES}}}", NODE),),
            "percentunit",
            red_from=0.5,
            most=1,
        ),
        Panel(
            "Writes that failed",
            "Writes that the topic has not taken; they are tried again each second.",
            (Query(f"sum by (instance) (rate(kavka_audit_write_failures_total{{{NODES}}}[$__rate_interval]))", NODE),),
            "ops",
        ),
        Panel(
            "Requests refused for the trail",
            "By what they ask for; only with kavka.audit.failure.policy=reject.",
            (Query(f"sum by (kind) (rate(kavka_audit_refused_total{{{NODES}}}[$__rate_interval]))", "{{kind}}"),),
            "reqps",
        ),
        Panel(
            "What was verified",
            "Events in their places, events that nodes say they have lost, records that are no entries, and chains of"
            " older nodes, which name no cluster.",
            (
                Query(f"kavka_audit_verified_events{{{CLUSTER}}}", "events"),
                Query(f"kavka_audit_lost_events{{{CLUSTER}}}", "lost"),
                Query(f"kavka_audit_foreign_records{{{CLUSTER}}}", "foreign records"),
                Query(f"kavka_audit_unnamed_chains{{{CLUSTER}}}", "chains without a cluster"),
            ),
        ),
    ),
)
AUDIT: Final = Dashboard(
    "kavka-audit",
    "Kavka: audit",
    "What happens, who is refused, whether the trail keeps it all, and whether it is as it was written.",
    (
        Variable("cluster", "label_values(kavka_broker_info, cluster)", is_many=False),
        Variable("broker", 'label_values(kavka_broker_info{cluster="$cluster"}, instance)'),
    ),
    (NOW, REFUSED, HAPPENING, TRAIL),
    MARKS,
)
