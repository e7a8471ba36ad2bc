"""What the active controller does by itself from time to time: leaders go back to preferred replicas, lost partitions
find a leader where their topic would rather lose records than wait, and delegation tokens that are over are removed.

- `auto.leader.rebalance.enable`, each `leader.imbalance.check.interval.seconds`. Apache Kafka with KRaft looks at
  no percentage per broker, and neither does Kavka: what is out of balance is put right, a thousand leaders at a
  time.
- `unclean.leader.election.enable` (of a topic, of all brokers, or of the file), each
  `unclean.leader.election.interval.ms`. A broker that comes back looks for such partitions at once; this is for an
  allowance that is given later.
- `delegation.token.secret.key`, each `delegation.token.expiry.check.interval.ms`.
"""

import asyncio
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from kavka_broker.controller.sessions import Decider
from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.decision import Decision
from kavka_broker.core.metadata.decide.delegation_tokens import SWEPT_MAX, sweep
from kavka_broker.core.metadata.decide.election_policy import policy_of
from kavka_broker.core.metadata.decide.leader_moves import ELECTIONS_MAX, balance, rescue
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.logs import get
from kavka_broker.loop.tasks import watch
from kavka_broker.loop.timers import Timer, Timers
from kavka_broker.protocol.errors import BrokerError

log = get("controller")

#: The pause after a round that had more changes than one decision may hold.
GO_ON_MS: Final = 1000

Work = Callable[[Metadata, int], Decision[int]]


class Round(NamedTuple):
    """Work that is done again and again; its answer is how much was changed, of which one decision has `most`."""

    name: str
    interval_ms: int
    work: Work
    most: int
    tell: Callable[[str, int], None]  # of what was changed


class Balancing:
    """Rounds of work while the controller is active. `start` ties them to its terms."""

    def __init__(self, controller: Decider, config: BrokerConfig, timers: Timers) -> None:
        self._controller = controller
        self._policy = policy_of(config)
        self._timers = timers
        self._rounds = list(self._chosen(config))
        self._waiting: dict[str, Timer] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def _chosen(self, config: BrokerConfig) -> Iterator[Round]:
        """The rounds that the configuration asks for."""
        policy = self._policy
        interval_ms = config["unclean.leader.election.interval.ms"]
        yield Round("rescue", interval_ms, lambda image, _: rescue(image, policy), ELECTIONS_MAX, _moved)
        if config["auto.leader.rebalance.enable"]:
            interval_ms = config["leader.imbalance.check.interval.seconds"] * 1000
            yield Round("balance", interval_ms, lambda image, _: balance(image, policy), ELECTIONS_MAX, _moved)
        if config["delegation.token.secret.key"] is not None:
            interval_ms = config["delegation.token.expiry.check.interval.ms"]
            yield Round("sweep", interval_ms, lambda image, now_ms: sweep(image.tokens, now_ms), SWEPT_MAX, _removed)

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
        for chosen in self._rounds:
            self._wait(chosen, chosen.interval_ms)

    def _wait(self, chosen: Round, delay_ms: int) -> None:
        self._waiting[chosen.name] = self._timers.after(delay_ms, self._go, chosen)

    def _go(self, chosen: Round) -> None:
        loop = asyncio.get_running_loop()
        self._tasks[chosen.name] = watch(loop.create_task(self._round(chosen), name=f"round.{chosen.name}"))

    async def _round(self, chosen: Round) -> None:
        changed = 0
        try:
            changed = await self._controller.submit(chosen.work)
        except BrokerError as error:
            log.warning("round.failed", work=chosen.name, reason=error.message or error.code.name)
        if changed:
            chosen.tell(chosen.name, changed)
        self._wait(chosen, min(chosen.interval_ms, GO_ON_MS) if changed >= chosen.most else chosen.interval_ms)


def _moved(work: str, count: int) -> None:
    log.info("leaders.moved", work=work, partitions=count)


def _removed(work: str, count: int) -> None:
    log.info("delegation_tokens.removed", work=work, tokens=count)
