"""The Lease: one holds it, by nobody else's clock; whoever cannot renew it stops in time."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest

from kavka_operator.platform.kubernetes.live.api import ApiError
from kavka_operator.process.lease import (
    DURATION_SECONDS,
    PAUSE_SECONDS,
    Glance,
    Lease,
    glanced,
    may_take,
    taken,
)
from kavka_operator.process.operator import LANES_SECONDS_MAX, LeaseLostError, lead
from tests.sim.loop import SimLoop
from tests.support.waiting import pass_seconds

AT = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
OTHERS = {"holderIdentity": "other", "leaseDurationSeconds": DURATION_SECONDS, "leaseTransitions": 3}


def test_a_lease_is_taken_when_it_is_nobodys_ones_own_or_has_not_changed_for_its_duration() -> None:
    seen = glanced(None, OTHERS, 100.0)
    assert glanced(seen, dict(OTHERS), 110.0) == seen, "it has not changed since"
    assert [may_take(seen, "me", now) for now in (100.0, 114.9, 115.0)] == [False, False, True]
    assert glanced(seen, {**OTHERS, "renewTime": "later"}, 110.0).since == 110.0
    assert may_take(seen, "other", 100.0)
    assert may_take(Glance({"holderIdentity": ""}, 100.0), "me", 100.0)
    assert may_take(Glance({}, 100.0), "me", 100.0)


def test_taking_over_is_counted_and_renewing_is_not() -> None:
    mine = taken(OTHERS, "me", AT)
    assert (mine["holderIdentity"], mine["leaseTransitions"]) == ("me", 4)
    again = taken(mine, "me", AT.replace(minute=1))
    assert (again["acquireTime"], again["leaseTransitions"]) == (mine["acquireTime"], 4)
    assert again["renewTime"] != mine["renewTime"]


class Leases:
    """An API server's Lease; `is_away` makes it answer nobody."""

    def __init__(self) -> None:
        self.known: dict[str, Any] | None = None
        self.is_away = False
        self.version = 0

    async def lease(self, namespace: str, name: str) -> dict[str, Any]:
        if self.is_away:
            raise ApiError("away")
        if self.known is None:
            raise ApiError("no such lease", 404)
        return self.known

    async def put_lease(self, namespace: str, name: str, lease: Mapping[str, Any]) -> dict[str, Any]:
        if self.is_away:
            raise ApiError("away")
        named = lease.get("metadata", {}).get("resourceVersion")
        if named != (self.known and self.known["metadata"]["resourceVersion"]):
            raise ApiError("changed meanwhile", 409)
        self.version += 1
        self.known = {**lease, "metadata": {"resourceVersion": str(self.version)}}
        return self.known


def claim(leases: Leases, identity: str, pause_seconds: float = PAUSE_SECONDS) -> Lease:
    loop = asyncio.get_running_loop()
    return Lease(leases, "default", "kavka-operator", identity, loop.time, pause_seconds)  # type: ignore[arg-type]


def play(scenario: Any) -> None:
    """Run a scenario in simulated time."""
    loop = SimLoop(1)
    try:
        loop.run_until_complete(scenario)
    finally:
        loop.bury()
        loop.close()


def test_of_two_that_want_it_one_holds_it_and_the_other_after_it_is_given_back() -> None:
    async def scenario() -> None:
        leases, done = Leases(), asyncio.Event()
        acted: list[str] = []

        async def work(identity: str) -> None:
            acted.append(identity)
            await done.wait()

        both = [asyncio.create_task(lead(claim(leases, name), partial(work, name))) for name in ("a", "b")]
        await pass_seconds(60)
        assert len(acted) == 1
        done.set()
        await asyncio.gather(*both)
        assert sorted(acted) == ["a", "b"]
        assert leases.known is not None
        assert leases.known["spec"]["holderIdentity"] == ""

    play(scenario())


def test_who_cannot_renew_stops_before_another_may_begin() -> None:
    async def scenario() -> None:
        leases, loop = Leases(), asyncio.get_running_loop()
        begun: list[float] = []
        stopped: list[float] = []

        async def work() -> None:
            begun.append(loop.time())
            try:
                await pass_seconds(1000)
            finally:
                stopped.append(loop.time())

        leading = asyncio.create_task(lead(claim(leases, "a"), work))
        await pass_seconds(5)
        leases.is_away = True
        await pass_seconds(DURATION_SECONDS)
        assert len(stopped) == 1
        leases.is_away, back = False, loop.time()
        await pass_seconds(PAUSE_SECONDS)
        assert begun[1] - back <= PAUSE_SECONDS, "it stood back, and nobody else has taken the lease"
        leading.cancel()

    play(scenario())


def test_who_has_lost_the_lease_waits_for_it_behind_another() -> None:
    async def scenario() -> None:
        leases, acting = Leases(), list[str]()

        async def work(identity: str) -> None:
            acting.append(identity)
            try:
                await pass_seconds(1000)
            finally:
                acting.remove(identity)

        both = {name: asyncio.create_task(lead(claim(leases, name), partial(work, name))) for name in ("a", "b")}
        await pass_seconds(5)
        assert acting == ["a"]
        assert leases.known is not None
        given = taken(leases.known["spec"], "b", AT)
        await leases.put_lease("default", "kavka-operator", {**leases.known, "spec": given})  # as by hand
        await pass_seconds(3 * DURATION_SECONDS)
        assert acting == ["b"]
        both["b"].cancel()
        await pass_seconds(2 * DURATION_SECONDS)
        assert acting == ["a"], "after the lease of the other has run out"
        both["a"].cancel()

    play(scenario())


def test_who_may_act_still_does_not_stay() -> None:
    async def scenario() -> None:
        leases = Leases()

        async def work() -> None:
            try:
                await pass_seconds(1000)
            finally:
                raise LeaseLostError("a turn waits for an answer still")

        leading = asyncio.create_task(lead(claim(leases, "a"), work))
        await pass_seconds(5)
        leases.is_away = True
        with pytest.raises(LeaseLostError, match="a turn waits"):
            await leading

    play(scenario())


def test_whatever_ends_the_renewing_ends_the_work() -> None:
    async def scenario() -> None:
        leases = Leases()
        leading = asyncio.create_task(lead(claim(leases, "a"), partial(asyncio.sleep, 1000)))
        await pass_seconds(5)
        leases.known = {"spec": None, "metadata": None}  # no API server answers so: a fault in our own code
        await pass_seconds(DURATION_SECONDS)
        assert leading.done()
        with pytest.raises(LeaseLostError):
            await leading

    play(scenario())


def test_a_fault_of_the_work_is_raised_and_the_lease_runs_out() -> None:
    async def scenario() -> None:
        async def fail() -> None:
            raise RuntimeError("no such thing")

        leases = Leases()
        with pytest.raises(RuntimeError, match="no such thing"):
            await lead(claim(leases, "a", 1.0), fail)
        begun = asyncio.get_running_loop().time()
        await claim(leases, "b", 1.0).acquire()
        assert asyncio.get_running_loop().time() - begun >= DURATION_SECONDS

    play(scenario())


class Slow(Leases):
    """An API server that is slow to answer writes: `waits` has the seconds of the next ones, the last that of the rest.
    What is answered late was done at once, or just before the answer (`is_done_late`).
    """

    def __init__(self, *, is_done_late: bool = False) -> None:
        super().__init__()
        self.waits = [0.0]
        self.is_done_late = is_done_late
        self.written: list[float] = []

    async def put_lease(self, namespace: str, name: str, lease: Mapping[str, Any]) -> dict[str, Any]:
        seconds = self.waits.pop(0) if len(self.waits) > 1 else self.waits[0]
        if self.is_done_late:
            await pass_seconds(seconds)
        answer = await super().put_lease(namespace, name, lease)
        self.written.append(asyncio.get_running_loop().time())
        if not self.is_done_late:
            await pass_seconds(seconds)
        return answer


@pytest.mark.parametrize("is_done_late", [False, True])
@pytest.mark.parametrize(
    "waits",
    [(3.0, 3.0, 0.0), (7.0, 0.0), (1000.0, 0.0), (1000.0, 3.0, 0.0), (4.5,)],
    ids=["twice slow", "once very slow", "one lost", "one lost, one slow", "all slow"],
)
def test_slow_answers_do_not_take_the_lease(waits: tuple[float, ...], is_done_late: bool) -> None:
    async def scenario() -> None:
        leases, stopped = Slow(is_done_late=is_done_late), list[str]()

        async def work() -> None:
            try:
                await pass_seconds(1000)
            finally:
                stopped.append("a")

        leading = asyncio.create_task(lead(claim(leases, "a"), work))
        await pass_seconds(5)
        leases.waits = list(waits)
        await pass_seconds(60)
        assert not stopped
        assert leases.known is not None
        assert (leases.known["spec"]["holderIdentity"], leases.known["spec"]["leaseTransitions"]) == ("a", 1)
        leading.cancel()

    play(scenario())


def test_who_hears_nothing_stops_before_another_may_begin_however_its_tries_fall() -> None:
    async def scenario(mute_at: float) -> None:
        leases, loop = Slow(is_done_late=True), asyncio.get_running_loop()
        ended: list[float] = []

        async def work() -> None:
            try:
                await pass_seconds(1000)
            finally:
                await pass_seconds(LANES_SECONDS_MAX)  # what is under way may go on for so long
                ended.append(loop.time())

        leading = asyncio.create_task(lead(claim(leases, "a"), work))
        await pass_seconds(mute_at)
        leases.waits = [1000.0]
        await pass_seconds(2 * DURATION_SECONDS)
        assert ended[0] - leases.written[-1] < DURATION_SECONDS
        assert leases.written[-1] <= mute_at, "nothing was written since"
        leading.cancel()

    for tenths in range(20):
        play(scenario(5 + tenths / 10))
