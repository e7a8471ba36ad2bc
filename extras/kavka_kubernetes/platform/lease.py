"""The Lease that one operator holds while it acts (coordination.k8s.io/v1), as client-go's leader election uses it.

Clocks of machines differ, so nobody believes the times that a Lease holds: who wants it waits until it has not changed
for its whole duration by an own clock. Every write names the version that was read, so of two that want it one gets it.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from kavka_kubernetes.platform.api import CONFLICT, GONE, Api, ApiError, Document
from kavka_operator.api.stored import part

log = logging.getLogger("kavka.operator")

DURATION_SECONDS = 15
RENEW_SECONDS_MAX = 10.0
TRY_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Glance:
    """A Lease as it was read, and since when it has been like that."""

    spec: Mapping[str, Any]
    since: float


def glanced(before: Glance | None, spec: Mapping[str, Any], now: float) -> Glance:
    """The Lease as it is now; it keeps its moment while nobody writes it."""
    return before if before is not None and before.spec == spec else Glance(spec, now)


def may_take(glance: Glance, identity: str, now: float) -> bool:
    """Whether a Lease is one's own, nobody's, or has not been renewed for its duration."""
    holder = glance.spec.get("holderIdentity")
    duration = float(glance.spec.get("leaseDurationSeconds") or DURATION_SECONDS)
    return not holder or holder == identity or now - glance.since >= duration


def taken(spec: Mapping[str, Any], identity: str, at: datetime) -> Document:
    """The Lease as its holder writes it: renewed, or taken over."""
    stamp = at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    is_renewed = spec.get("holderIdentity") == identity
    return {
        "holderIdentity": identity,
        "leaseDurationSeconds": DURATION_SECONDS,
        "acquireTime": spec.get("acquireTime", stamp) if is_renewed else stamp,
        "renewTime": stamp,
        "leaseTransitions": int(spec.get("leaseTransitions") or 0) + (not is_renewed),
    }


@dataclass(slots=True)
class Lease:
    """One's claim to a Lease. `clock` counts seconds."""

    api: Api
    namespace: str
    name: str
    identity: str
    clock: Callable[[], float]
    _glance: Glance | None = field(default=None)
    _renewed: float = field(default=-RENEW_SECONDS_MAX)  # when the renewal began that was done last

    async def acquire(self) -> None:
        """Wait until the Lease is held."""
        while True:
            if await self._try(TRY_SECONDS):
                log.info("lease.taken", extra={"words": self.identity})
                return
            await asyncio.sleep(TRY_SECONDS)

    async def keep(self) -> None:
        """Renew the Lease; returns when another holds it, or `RENEW_SECONDS_MAX` after the last renewal was begun.

        Others count from the moment when that was written, of which only the begin is known here.
        """
        while self._left > TRY_SECONDS:
            await asyncio.sleep(TRY_SECONDS)
            if not await self._try(min(TRY_SECONDS, self._left)) and self._is_anothers:
                break
        log.error("lease.lost", extra={"words": self.identity})

    @property
    def _left(self) -> float:
        """The seconds for which the Lease is held if it is not renewed again."""
        return self._renewed + RENEW_SECONDS_MAX - self.clock()

    @property
    def _is_anothers(self) -> bool:
        return self._glance is not None and self._glance.spec.get("holderIdentity") != self.identity

    async def release(self) -> None:
        """Let another have the Lease at once, if it is still held."""
        try:
            known = await self.api.lease(self.namespace, self.name)
            spec = part(known, "spec")
            if spec.get("holderIdentity") == self.identity:
                await self.api.put_lease(self.namespace, self.name, {**known, "spec": {**spec, "holderIdentity": ""}})
        except ApiError as error:
            log.warning("lease.not_released", extra={"words": str(error)})

    async def _try(self, seconds: float) -> bool:
        """Take or renew the Lease within so many seconds; whether it is held now."""
        began = self.clock()
        try:
            async with asyncio.timeout(seconds):
                is_held = await self._take()
            self._renewed = began if is_held else self._renewed
            return is_held
        except (ApiError, TimeoutError) as error:
            if not isinstance(error, ApiError) or error.status != CONFLICT:
                log.warning("lease.not_taken", extra={"words": str(error) or "the API server does not answer"})
            return False

    async def _take(self) -> bool:
        now = datetime.now(UTC)
        try:
            known = await self.api.lease(self.namespace, self.name)
        except ApiError as error:
            if error.status != GONE:
                raise
            await self.api.put_lease(self.namespace, self.name, {"spec": taken({}, self.identity, now)})
            return True
        spec = part(known, "spec")
        self._glance = glanced(self._glance, spec, self.clock())
        if not may_take(self._glance, self.identity, self.clock()):
            return False
        wanted = {**known, "spec": taken(spec, self.identity, now)}
        written = await self.api.put_lease(self.namespace, self.name, wanted)
        self._glance = glanced(self._glance, part(written, "spec"), self.clock())
        return True
