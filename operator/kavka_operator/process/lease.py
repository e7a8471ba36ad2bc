"""The Lease that one operator holds while it acts (coordination.k8s.io/v1), as client-go's leader election uses it.

Clocks of machines differ, so nobody believes the times that a Lease holds: who wants it waits until it has not changed
for its whole duration by an own clock. Every write names the version that was read, so of two that want it one gets it.
A renewal may take as long as the Lease is held; a second request goes out at half time, in case the first is lost.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from kavka_operator.api.stored_resources import part
from kavka_operator.platform.kubernetes.live.api import CONFLICT, GONE, Api, ApiError, Document

log = logging.getLogger("kavka.operator")

DURATION_SECONDS = 15
RENEW_SECONDS_MAX = 10.0
PAUSE_SECONDS = 2.0  # between renewals, and after a request that was refused
TRIES_MAX = 2  # requests to renew that wait at the same time


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
    pause_seconds: float = PAUSE_SECONDS
    _glance: Glance | None = field(default=None)
    _own: Document | None = field(default=None)  # as it was written last, while nothing else was read
    _renewed: float = field(default=-RENEW_SECONDS_MAX)  # when the renewal began that was done last

    async def acquire(self) -> None:
        """Wait until the Lease is held."""
        while True:
            if await self._try(RENEW_SECONDS_MAX):
                log.info("lease.taken", extra={"words": self.identity})
                return
            await asyncio.sleep(self.pause_seconds)

    async def keep(self) -> None:
        """Renew the Lease; returns when another holds it, or `RENEW_SECONDS_MAX` after the last renewal was begun.

        Others count from the moment when that was written, of which only the begin is known here.
        """
        while True:
            await asyncio.sleep(max(0.0, self._renewed + self.pause_seconds - self.clock()))
            if not await self._renew():
                break
        log.error("lease.lost", extra={"words": self.identity})

    async def _renew(self) -> bool:
        """Renew the Lease while it is held; whether it is. Each request may wait as long as that."""
        tries = list[asyncio.Task[bool]]()
        has_news, next_at = asyncio.Event(), self.clock()
        try:
            while (left := self._left) > 0 and not self._is_anothers:
                if len(tries) < TRIES_MAX and self.clock() >= next_at:
                    tries.append(asyncio.create_task(self._try(left)))
                    tries[-1].add_done_callback(lambda _: has_news.set())
                    next_at = self.clock() + left / 2
                pause = left if len(tries) == TRIES_MAX else min(left, max(0.0, next_at - self.clock()))
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await has_news.wait()
                has_news.clear()
                ended, tries = [task for task in tries if task.done()], [task for task in tries if not task.done()]
                if any(task.result() for task in ended if not task.cancelled()):
                    return True
                if ended:
                    next_at = self.clock() + self.pause_seconds
            return False
        finally:
            for task in tries:
                task.cancel()

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
        try:
            async with asyncio.timeout(seconds):
                return await self._take()
        except (ApiError, TimeoutError) as error:
            if not isinstance(error, ApiError) or error.status != CONFLICT:
                log.warning("lease.not_taken", extra={"words": str(error) or "the API server does not answer"})
            return False

    async def _take(self) -> bool:
        """Take or renew the Lease; whether it is held now. What was written last is written over without a question."""
        if self._own is not None:
            try:
                return await self._write(self._own)
            except ApiError as error:
                if error.status not in {CONFLICT, GONE}:
                    raise
                self._own = None  # it has changed: by another, or by an earlier request that heard no answer
        try:
            known = await self.api.lease(self.namespace, self.name)
        except ApiError as error:
            if error.status != GONE:
                raise
            return await self._write({})
        self._glance = glanced(self._glance, part(known, "spec"), self.clock())
        return may_take(self._glance, self.identity, self.clock()) and await self._write(known)

    async def _write(self, known: Document) -> bool:
        began = self.clock()
        wanted = {**known, "spec": taken(part(known, "spec"), self.identity, datetime.now(UTC))}
        written = await self.api.put_lease(self.namespace, self.name, wanted)
        self._renewed = max(self._renewed, began)
        self._own, self._glance = written, glanced(self._glance, part(written, "spec"), self.clock())
        return True
