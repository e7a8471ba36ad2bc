"""Every rule, and the findings in the order in which to read them."""

from kavka_operator.doctor import disks, groups, leaders, partitions, quotas, settings, transactions, usage
from kavka_operator.doctor import open_listeners as protection
from kavka_operator.doctor.evidence import Examined, Finding

RULES = (
    partitions.judged,
    disks.judged,
    transactions.judged,
    leaders.judged,
    settings.judged,
    groups.judged,
    quotas.judged,
    protection.judged,
    usage.judged,
)


def judge(seen: Examined) -> list[Finding]:
    """The findings, the worst first."""
    found = [finding for rule in RULES for finding in rule(seen)]
    return sorted(found, key=lambda finding: -finding.severity)
