"""Analytics: have the audit analytics run, did every record arrive, and what does the trail not tell."""

from typing import Final

from tools.dashboards.panels import Dashboard, Panel, Query, Row, Variable, number

CLUSTER: Final = 'cluster="$cluster"'
TOPICS: Final = 'cluster="$cluster", topic=~"$topic"'
WHERE: Final = "{{topic}} {{tier}} {{group}}"

NOW: Final = Row(
    "Now",
    (
        number(
            "Last run",
            "How long ago the analytics came to their end; everything here is as old.",
            f"time() - max(kavka_analytics_last_success_timestamp_seconds{{{CLUSTER}}})",
            red_from=7200,
            unit="s",
        ),
        number(
            "Incomplete topics",
            "Topics and tiers of which less than 99.9 % is there, over a day of closed buckets.",
            f"count(kavka_analytics_completeness_ratio{{{CLUSTER}}} < 0.999) or vector(0)",
            red_from=1,
        ),
        number(
            "Missing records",
            "Over a day of closed buckets, in all topics and tiers.",
            f"sum(kavka_analytics_missing_records{{{CLUSTER}}})",
            red_from=1,
        ),
        number(
            "Duplicate records",
            "Over a day of closed buckets, in all topics and tiers.",
            f"sum(kavka_analytics_duplicate_records{{{CLUSTER}}})",
            red_from=1,
        ),
        number(
            "Gaps of the trail",
            "Places at which the trail does not tell everything.",
            f"sum(kavka_analytics_gaps{{{CLUSTER}}})",
            red_from=1,
        ),
        number(
            "Series left out",
            "Topics and tiers that are not on this page, as there are too many; the most complete ones.",
            f"sum(kavka_analytics_omitted_series{{{CLUSTER}}})",
            red_from=1,
        ),
    ),
)
COMPLETENESS: Final = Row(
    "Completeness",
    (
        Panel(
            "Least complete",
            "The share of the expected records that are there: of producers in the log, of the log at a group.",
            (Query(f"bottomk(20, kavka_analytics_completeness_ratio{{{TOPICS}}})", WHERE),),
            "percentunit",
            "bargauge",
            12,
            most=1,
        ),
        Panel(
            "Completeness",
            "The same over time. A group that lags comes up again as it reads on.",
            (Query(f"bottomk(20, kavka_analytics_completeness_ratio{{{TOPICS}}})", WHERE),),
            "percentunit",
            width=12,
            most=1,
        ),
        Panel(
            "Missing",
            "Records that were acknowledged and are not in the log, or are in the log and were not read.",
            (Query(f"topk(20, kavka_analytics_missing_records{{{TOPICS}}})", WHERE),),
        ),
        Panel(
            "Duplicates",
            "Records in the log that no producer says to have written, or that a group read more than once.",
            (Query(f"topk(20, kavka_analytics_duplicate_records{{{TOPICS}}})", WHERE),),
        ),
        Panel(
            "Late",
            "Records that clients told of after their bucket of ten minutes had closed.",
            (Query(f"topk(20, kavka_analytics_late_records{{{TOPICS}}})", WHERE),),
        ),
    ),
)
TRAIL: Final = Row(
    "The trail",
    (
        Panel(
            "Gaps",
            "Places at which the trail does not tell everything, by kind.",
            (Query(f"sum by (gap) (kavka_analytics_gaps{{{CLUSTER}}})", "{{gap}}"),),
        ),
        Panel(
            "Entries that are not told",
            "What is missing, lost, dead or was deleted before it was read.",
            (Query(f"sum by (gap) (kavka_analytics_gap_entries{{{CLUSTER}}})", "{{gap}}"),),
        ),
        Panel(
            "Records taken in",
            "By the last run; missed were deleted before, dead are no entries.",
            (
                Query(f"sum(kavka_analytics_new_records{{{CLUSTER}}})", "new"),
                Query(f"sum(kavka_analytics_missed_records{{{CLUSTER}}})", "missed"),
                Query(f"sum(kavka_analytics_dead_records{{{CLUSTER}}})", "dead"),
            ),
        ),
    ),
)

ANALYTICS: Final = Dashboard(
    "kavka-analytics",
    "Kavka: analytics",
    "Whether every record has arrived once, and whether the audit trail is whole, as the last run found it.",
    (
        Variable("cluster", "label_values(kavka_analytics_last_success_timestamp_seconds, cluster)", is_many=False),
        Variable("topic", 'label_values(kavka_analytics_completeness_ratio{cluster="$cluster"}, topic)'),
    ),
    (NOW, COMPLETENESS, TRAIL),
)
