"""What the active controller does by itself from time to time: leaders go back to preferred replicas, and lost
partitions find a leader where their topic would rather lose records than wait.

- `auto.leader.rebalance.enable`, each `leader.imbalance.check.interval.seconds`. Apache Kafka with KRaft looks at
  no percentage per broker, and neither does Kavka: what is out of balance is put right, a thousand leaders at a
  time.
- `unclean.leader.election.enable` (of a topic, of all brokers, or of the file), each
  `unclean.leader.election.interval.ms`. A broker that comes back looks for such partitions at once; this is for an
  allowance that is given later.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from kavka_broker.controller.sessions import Decider
from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.decision import Decision
from kavka_broker.core.metadata.decide.elections import ELECTIONS_MAX, balance, rescue
from kavka_broker.core.metadata.decide.policy import Policy, policy_of
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.logs import get
from kavka_broker.protocol.errors import BrokerError
from kavka_broker.timers import Timer, Timers

log = get("controller")

#: The pause after a round that had more changes than one decision may hold.
GO_ON_MS: Final = 1000

Work = Callable[[Metadata, Policy], Decision[int]]


class Balancing:
    """Rounds of work while the controller is active. `start` ties them to its terms."""

    def __init__(self, controller: Decider, config: BrokerConfig, timers: Timers) -> None:
        self._controller = controller
        self._policy = policy_of(config)
        self._timers = timers
        self._rounds: list[tuple[str, int, Work]] = [("rescue", config["unclean.leader.election.interval.ms"], rescue)]
        if config["auto.leader.rebalance.enable"]:
            interval_ms = config["leader.imbalance.check.interval.seconds"] * 1000
            self._rounds.append(("balance", interval_ms, balance))
        self._waiting: dict[str, Timer] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def start(self) -> None:
        """Follow the controller from term to term."""
        self._controller.activated.append(self._begin)
        self._controller.deactivated.append(self.stop)
        if self._controller.is_active:
            self._begin()

    def stop(self) -> None:
        """Begin no more rounds."""
        for timer in self._waiting.values():
            timer.cancel()
        self._waiting.clear()
        for task in self._tasks.values():
            task.cancel()
        self._tasks.clear()

    def _begin(self) -> None:
        self.stop()
        for name, interval_ms, work in self._rounds:
            self._wait(name, interval_ms, interval_ms, work)

    def _wait(self, name: str, delay_ms: int, interval_ms: int, work: Work) -> None:
        self._waiting[name] = self._timers.after(delay_ms, self._go, name, interval_ms, work)

    def _go(self, name: str, interval_ms: int, work: Work) -> None:
        loop = asyncio.get_running_loop()
        task = loop.create_task(self._round(name, interval_ms, work), name=f"leaders.{name}")
        self._tasks[name] = task
        task.add_done_callback(_raise_failure)

    async def _round(self, name: str, interval_ms: int, work: Work) -> None:
        moved = 0
        try:
            moved = await self._controller.submit(lambda metadata, _: work(metadata, self._policy))
        except BrokerError as error:
            log.warning("leaders.not_moved", work=name, reason=error.message or error.code.name)
        if moved:
            log.info("leaders.moved", work=name, partitions=moved)
        self._wait(name, min(interval_ms, GO_ON_MS) if moved >= ELECTIONS_MAX else interval_ms, interval_ms, work)


def _raise_failure(task: "asyncio.Task[None]") -> None:
    if not task.cancelled():
        task.result()  # an unexpected error goes to the loop's exception handler
