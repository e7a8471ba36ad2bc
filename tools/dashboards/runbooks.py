"""Which panel leads to which runbook: a panel that shows what an alert is about has a link to the page of that alert.

The pages are where their readers have them: the variable `runbooks` of a dashboard is the address before their names.
"""

from collections.abc import Mapping
from typing import Any, Final

VARIABLE: Final = "runbooks"
FOLDER: Final = "docs/runbooks"
FLEET, QUOTA, BROKER, AUDIT, OPERATOR, ANALYTICS = (
    f"kavka-{name}" for name in ("fleet", "quota", "broker", "audit", "operator", "analytics")
)

PANELS: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    "KavkaActiveControllers": ((BROKER, "Active controllers"),),
    "KavkaAnalyticsStale": ((ANALYTICS, "Last run"),),
    "KavkaAssertionFailed": ((BROKER, "Failed assertions"),),
    "KavkaAuditChainBroken": ((AUDIT, "Chains not sound"), (AUDIT, "What was verified")),
    "KavkaAuditDeniedSpike": ((AUDIT, "Refusals"),),
    "KavkaAuditDropping": ((AUDIT, "Events dropped"), (AUDIT, "Room used")),
    "KavkaAuditNotVerified": ((AUDIT, "Last verified"),),
    "KavkaAuditRefusalFlood": ((AUDIT, "Events about refusals"),),
    "KavkaAuditRefusing": ((AUDIT, "Nodes that refuse"), (AUDIT, "Requests refused for the trail")),
    "KavkaAuditStalled": ((AUDIT, "Last write"), (AUDIT, "Writes that failed")),
    "KavkaAuthenticationFailures": ((AUDIT, "Failed logins"),),
    "KavkaBrokersFenced": ((BROKER, "Fenced brokers"), (FLEET, "Clusters")),
    "KavkaClientHurtByNeighbour": ((QUOTA, "Waiting for turns of others"), (QUOTA, "Most time on the loop")),
    "KavkaClientSeriesOverflow": ((QUOTA, "Series left out"),),
    "KavkaClustersWaiting": ((OPERATOR, "Clusters that wait"),),
    "KavkaCompletenessLow": ((ANALYTICS, "Incomplete topics"), (ANALYTICS, "Least complete")),
    "KavkaConnectionsRefused": ((BROKER, "Connections refused"),),
    "KavkaDiskFillsUp": ((BROKER, "Disk used"), (FLEET, "Fullest disk")),
    "KavkaDiskNearlyFull": ((BROKER, "Disk used"), (FLEET, "Fullest disk")),
    "KavkaGroupLagGrows": ((BROKER, "Records behind"), (BROKER, "Time behind"), (FLEET, "Records behind")),
    "KavkaLogDirectoryOffline": ((BROKER, "Failed directories"),),
    "KavkaLoopBusy": ((BROKER, "The loop"), (FLEET, "Loop")),
    "KavkaLoopHeld": ((BROKER, "Held for more than 10 ms at once"),),
    "KavkaNodeDown": ((BROKER, "Brokers"),),
    "KavkaNodeNotReady": ((BROKER, "Nodes that are ready"),),
    "KavkaOfflinePartitions": ((BROKER, "Offline partitions"), (FLEET, "Clusters")),
    "KavkaOperatorInactive": ((OPERATOR, "Operators that act"),),
    "KavkaOperatorLookFails": ((OPERATOR, "Looks that failed"),),
    "KavkaOperatorNeverRests": ((OPERATOR, "Writes"),),
    "KavkaQuorumWithoutLeader": ((BROKER, "Active controllers"),),
    "KavkaQuotaCallbackFails": ((QUOTA, "Quotas"),),
    "KavkaQuotaNearLimit": ((QUOTA, "Quotas near their limit"), (QUOTA, "Used, of the limit")),
    "KavkaQuotaShadowed": ((QUOTA, "Quotas without effect"),),
    "KavkaQuotaThrottledForLong": (
        (QUOTA, "Quotas that hold somebody"),
        (QUOTA, "Share of the time in which somebody was held"),
    ),
    "KavkaQuotaUnused": ((QUOTA, "Used, of the limit"),),
    "KavkaRequestsSlow": ((BROKER, "Time of a request"), (BROKER, "99th percentile of the time of a request")),
    "KavkaResourceNotReady": ((OPERATOR, "Resources that are not ready"), (OPERATOR, "Not ready for")),
    "KavkaRollBlocked": ((OPERATOR, "Rolls that wait"), (OPERATOR, "Rolls")),
    "KavkaSeriesOmitted": ((QUOTA, "Series left out"),),
    "KavkaUncleanLeaderElection": ((BROKER, "Unclean elections"), (BROKER, "Elections")),
    "KavkaUncleanablePartitions": ((BROKER, "Log cleaner: dirtiest log"),),
    "KavkaUnderMinIsrPartitions": ((BROKER, "Under min.insync.replicas"),),
    "KavkaUnderReplicatedPartitions": ((BROKER, "Under-replicated"), (FLEET, "Under-replicated")),
}
"""The panels that lead to the runbook of an alert, by the dashboard's uid and their title."""
WITHOUT_A_PANEL: Final = frozenset({"KavkaTelemetryNotForwarded", "KavkaTelemetryOmitted", "KavkaTokenKeysOld"})


def links_of(uid: str, title: str) -> list[dict[str, Any]]:
    """The links from a panel to runbooks."""
    alerts = [alert for alert, panels in PANELS.items() if (uid, title) in panels]
    return [
        {"title": f"Runbook: {alert}", "url": f"${{{VARIABLE}}}/{alert}.md", "targetBlank": True} for alert in alerts
    ]


def variable() -> dict[str, Any]:
    """The choice of where the pages are, a text that a reader writes at the top."""
    here = {"text": FOLDER, "value": FOLDER}
    return {
        "name": VARIABLE, "label": "Runbooks at", "type": "textbox", "query": FOLDER, "current": here, "options": [here]
    }  # fmt: skip
