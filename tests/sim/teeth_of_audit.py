"""Defects of the audit trail that we plant to see that the simulation finds them; `teething` says how."""

from collections.abc import Awaitable, Callable
from typing import Any

from kavka_broker.core.audit.buffer import Journal, Policy
from kavka_broker.core.audit.chain import Chain, Entry
from kavka_broker.core.audit.events import Window
from kavka_broker.dispatch import audit_changes, forwarding
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.request.audit_backpressure import Refusing, is_let_in, refusal
from kavka_broker.runtime import auditing
from kavka_broker.runtime.audit_ends import KeptEnds
from tests.sim.teething import Patch, tooth


@tooth("events of the audit trail are dropped, although the policy is to reject", "kill pause", 5, workloads="audited",
       hectic=True)  # fmt: skip
def events_dropped_under_reject(patch: Patch) -> None:
    def permitting(chain: Any, now_ms: int, interval_ms: int, _: Policy, held_max: int) -> Journal:
        return Journal(chain, now_ms, interval_ms, Policy.PERMIT, held_max)

    patch.setattr(auditing, "Journal", permitting)


@tooth("a change is refused for lack of room in the audit trail once it is done", "kill pause", 5, workloads="audited",
       hectic=True)  # fmt: skip
def changes_refused_too_late(patch: Patch) -> None:
    changed = audit_changes.changed

    async def late(request: Any, api: Any, broker: Any, client: Any, decide: Callable[[Any], Awaitable[Any]]) -> Any:
        is_refused = broker.is_refusing and not is_let_in(request, api, broker, client)
        answer = await changed(request, api, broker, client, decide)
        if is_refused:
            return await decide(Refusing.of(broker, refusal(ErrorCode.POLICY_VIOLATION)))
        return answer

    patch.setattr(audit_changes, "is_let_in", lambda *_: True)
    patch.setattr(forwarding, "changed", late)


@tooth("a change for which a window of the audit trail has no more room is not counted", "kill pause", 5,
       workloads="audited", hectic=True)  # fmt: skip
def changes_not_counted(patch: Patch) -> None:
    note = Window.note

    def forgetful(self: Window, happening: Any, times: int = 1) -> None:
        if not len(self):
            note(self, happening, times)

    patch.setattr(Window, "note", forgetful)


@tooth("a node keeps where its chain ends only once the topic has taken a batch", "kill pause", 5, workloads="audited",
       hectic=True)  # fmt: skip
def ends_kept_too_late(patch: Patch) -> None:
    async def late(self: KeptEnds, last: Entry) -> None:
        await self._write()  # what was taken before

    patch.setattr(KeptEnds, "sending", late)


@tooth("the heads of a chain name no cluster", "kill pause", 5, workloads="audited", hectic=True)
def heads_without_a_cluster(patch: Patch) -> None:
    def nameless(source: str, key: Any, before: Any, _: str) -> Chain:
        return Chain(source, key, before)

    patch.setattr(auditing, "Chain", nameless)
