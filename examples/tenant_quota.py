"""One budget for each tenant, whichever of its users and client ids spends it.

A user's name, or the client id where nobody is authenticated, begins with its tenant: acme.etl and acme.web are both of
acme. What is set on the user acme is the budget of the tenant; whoever names no tenant keeps an allowance of its own.

    client.quota.callback.class=tenant_quota:TenantQuotas     in server.properties, then
    PYTHONPATH=examples kavka-broker run --config server.properties
    kafka-configs.sh --alter --entity-type users --entity-name acme --add-config producer_byte_rate=1048576 ...
"""

from collections.abc import Mapping

from kavka_broker.quotas.callback import ClientQuotaCallback, Entity

UNKNOWN = "ANONYMOUS"
TENANT = "tenant"


class TenantQuotas(ClientQuotaCallback):
    """Clients of one tenant draw on the same allowance of each broker."""

    def __init__(self) -> None:
        self._budgets: dict[tuple[str, str], float] = {}

    def quota_metric_tags(self, quota_type: str, user: str, client_id: str) -> Mapping[str, str]:
        name = client_id if user == UNKNOWN else user
        tenant, dot, _ = name.partition(".")
        return {TENANT: tenant} if dot else super().quota_metric_tags(quota_type, user, client_id)

    def quota_limit(self, quota_type: str, tags: Mapping[str, str]) -> float | None:
        return self._budgets.get((quota_type, tags.get(TENANT, "")))

    def update_quota(self, quota_type: str, entity: Entity, limit: float) -> None:
        if isinstance(entity.user, str) and entity.client_id is None:
            self._budgets[quota_type, entity.user] = limit

    def remove_quota(self, quota_type: str, entity: Entity) -> None:
        if isinstance(entity.user, str) and entity.client_id is None:
            self._budgets.pop((quota_type, entity.user), None)
