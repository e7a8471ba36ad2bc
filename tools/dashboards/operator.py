"""Operator: does somebody act, what is not as wanted, how far are rolls, and does it come to rest."""

from typing import Final

from tools.dashboards.panels import Dashboard, Mark, Panel, Query, Row, Variable, number

OF: Final = 'namespace=~"$namespace"'
WHO: Final = "{{kind}} {{namespace}}/{{name}}: {{reason}}"
CLUSTER: Final = "{{namespace}}/{{name}}"

NOW: Final = Row(
    "Now",
    (
        number("Operators that act", "There should be one.", "sum(kavka_operator_active)", red_from=2),
        number(
            "Resources that are not ready",
            "Of all kinds, whatever the reason.",
            'sum(kavka_operator_resources{ready!="True"}) or vector(0)',
            red_from=1,
        ),
        number("Resources", "KafkaClusters, Topics and ClientQuotas.", "sum(kavka_operator_resources)"),
        number("Clusters looked after", "Each has a thread.", "sum(kavka_operator_lanes)"),
        number(
            "Clusters that wait",
            "Nobody looks after them: an operator has 500 threads.",
            "sum(kavka_operator_clusters_waiting)",
            red_from=1,
        ),
        number(
            "Oldest turn",
            "How long the turn under way that began first has lasted; one that hangs ends the operator.",
            "max(kavka_operator_turn_longest_seconds)",
            red_from=120,
            unit="s",
        ),
    ),
)
WAITING: Final = Row(
    "What is not as wanted",
    (
        Panel(
            "Not ready for",
            "How long resources have not been as wanted, the longest first.",
            (Query(f"topk(20, time() - kavka_operator_not_ready_timestamp_seconds{{{OF}}}) or vector(0)", WHO),),
            unit="s",
            kind="bargauge",
            width=12,
        ),
        Panel(
            "Rolls",
            "The part of its nodes that a roll has restarted; nothing while there is none.",
            (
                Query(
                    f"kavka_operator_roll_nodes_done{{{OF}}} / kavka_operator_roll_nodes{{{OF}}} or vector(1)", CLUSTER
                ),
            ),
            unit="percentunit",
            width=6,
            most=1,
        ),
        Panel(
            "Rolls that wait",
            "How long the next node could not go.",
            (Query(f"time() - kavka_operator_roll_blocked_timestamp_seconds{{{OF}}} or vector(0)", CLUSTER),),
            unit="s",
            width=6,
        ),
    ),
)
WORK: Final = Row(
    "Work",
    (
        Panel(
            "Turns",
            "How long a look at a cluster takes, and what follows from it, in 99 of 100 turns.",
            (
                Query(
                    "histogram_quantile(0.99,"
                    " sum by (le, step) (rate(kavka_operator_turn_seconds_bucket[$__rate_interval])))",
                    "{{step}}",
                ),
            ),
            unit="s",
        ),
        Panel(
            "Looks that failed",
            "Clusters that did not answer, or a fault of the operator's.",
            (Query(f"rate(kavka_operator_look_failures_total{{{OF}}}[$__rate_interval]) or vector(0)", CLUSTER),),
        ),
        Panel(
            "Writes",
            "To Kubernetes by kind, and to Kafka by action. At rest there is none.",
            (
                Query(
                    "sum by (to, what) (rate(kavka_operator_writes_total[$__rate_interval])) or vector(0)",
                    "{{to}}: {{what}}",
                ),
            ),
            unit="wps",
        ),
    ),
)

ROLL: Final = f"kavka_operator_roll_nodes{{{OF}}}"
BLOCKED: Final = f"kavka_operator_roll_blocked_timestamp_seconds{{{OF}}}"
MARKS: Final = (
    Mark("A roll begins", f"{ROLL} unless {ROLL} offset 1m", CLUSTER, "orange"),
    Mark("A roll waits", f"{BLOCKED} unless {BLOCKED} offset 1m", CLUSTER, "red"),
    Mark("A roll has ended", f"{ROLL} offset 1m unless {ROLL}", CLUSTER, "green"),
)

OPERATOR: Final = Dashboard(
    "kavka-operator",
    "Kavka: Operator",
    "Does somebody act, what is not as wanted, how far are rolls, and does it come to rest.",
    (Variable("namespace", "label_values(kavka_operator_not_ready_timestamp_seconds, namespace)"),),
    (NOW, WAITING, WORK),
    MARKS,
)
