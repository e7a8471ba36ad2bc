"""Every metric of the broker: name, kind, labels and what it means. The reference page is made from this table, in its
order; its rows are in `metric_tables`.

Two vocabularies. `kafka_*` are the names under which Apache Kafka's figures have been stored for years, so that
dashboards and alerts keep working. `kavka_*` follow Prometheus' rules: base units, counters that can be summed, and
the limit beside the usage.
"""

from typing import Final

from kavka_broker.runtime.metric_tables.audit import AUDIT
from kavka_broker.runtime.metric_tables.cleaner import CLEANER
from kavka_broker.runtime.metric_tables.clients import CLIENTS
from kavka_broker.runtime.metric_tables.controller import CONTROLLER
from kavka_broker.runtime.metric_tables.family import Family
from kavka_broker.runtime.metric_tables.groups import GROUPS
from kavka_broker.runtime.metric_tables.network import NETWORK
from kavka_broker.runtime.metric_tables.node import NODE
from kavka_broker.runtime.metric_tables.partitions import PARTITIONS
from kavka_broker.runtime.metric_tables.quotas import QUOTAS
from kavka_broker.runtime.metric_tables.share_groups import SHARE_GROUPS
from kavka_broker.runtime.metric_tables.streams_groups import STREAMS_GROUPS
from kavka_broker.runtime.metric_tables.telemetry import TELEMETRY
from kavka_broker.runtime.metric_tables.transactions import TRANSACTIONS

FAMILIES: Final = tuple(
    Family(*row)
    for rows in (
        NODE,
        CLIENTS,
        QUOTAS,
        NETWORK,
        PARTITIONS,
        CLEANER,
        CONTROLLER,
        GROUPS,
        SHARE_GROUPS,
        STREAMS_GROUPS,
        TRANSACTIONS,
        TELEMETRY,
        AUDIT,
    )
    for row in rows
)

BY_NAME: Final = {family.name: family for family in FAMILIES}
