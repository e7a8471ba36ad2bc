"""A consumer group that is rolled between the classic protocol and KIP-848, with members of both in it (K10).

What `holdings` says must never be holds over each turn: no partition is with two members, and no epoch or generation
that a member was told is forgotten. Here topics are not deleted: members of the classic protocol know them by name.
"""

from collections.abc import Iterable, Iterator, Mapping
from random import Random
from typing import Any

from tests.sim.clients import Client
from tests.sim.consumers import CONSUMER_GROUP, TOPICS, Consumers, TopicChanger
from tests.sim.either_consumers import EitherConsumer
from tests.sim.holdings import in_one_epoch, unassigned


class TopicIds(Mapping[str, bytes]):
    """The ids of the topics that there are, by name."""

    def __init__(self, simulation: Any) -> None:
        self._simulation = simulation

    def _get(self, name: str) -> Any:
        return self._simulation.invariants.image.topics.get(name)

    def __getitem__(self, name: str) -> bytes:
        topic = self._get(name)
        if topic is None:
            raise KeyError(name)
        return bytes(topic.topic_id)

    def __iter__(self) -> Iterator[str]:
        return (name for name in TOPICS if self._get(name) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def partitions(self, name: str) -> int:
        return len(self._get(name).partitions)


class Migrating(Consumers):
    """Members that speak either protocol, each another one perhaps in its next life."""

    share = 0.03
    kind = EitherConsumer

    @classmethod
    def settings(cls, random: Random) -> dict[str, str]:
        return {
            **super().settings(random),
            "group.min.session.timeout.ms": "1000",
            "group.initial.rebalance.delay.ms": random.choice(("0", "400")),
        }

    def clients(self) -> Iterable[Client]:
        clients = list(super().clients())
        self.record.may_begin_anew = True
        is_cooperative, names = self.random.random() < 0.5, TopicIds(self.simulation)
        for client in clients:
            if isinstance(client, EitherConsumer):
                client.is_cooperative, client.topics_by_name = is_cooperative, names
            elif isinstance(client, TopicChanger):
                client.may_delete = False
        return clients

    def after_step(self, node: Any) -> None:
        broker = getattr(node.server, "broker", None)  # a node that has begun to start has none yet
        if not node.is_serving and node.is_alive and broker is not None and broker.serving is not None:
            self._look_for_members(node)
        super().after_step(node)

    def _look_for_members(self, node: Any) -> None:
        """Take note of a group without members also where its coordinator is fenced, and goes on all the same."""
        shard, seen = node.broker.groups.led.by_partition.get(0), self._seen.get(node.host)
        if shard is None or seen is None or seen.shard is not shard:
            return
        group = shard.image.find(CONSUMER_GROUP)
        if group is None or not group.members:
            self.record.is_empty(seen)

    def stop(self) -> None:
        super().stop()
        self._ends_classic = self.random.random() < 0.4
        for member in self._either if self._ends_classic else self._either[:1]:
            member.last_protocol = self._ends_classic
        # A group that a static member has brought back has no leader that would see new topics, as in Apache Kafka.
        self._either[0].has_to_leave = self._ends_classic

    @property
    def _either(self) -> list[EitherConsumer]:
        return [member for member in self.members if isinstance(member, EitherConsumer)]

    def missing(self) -> list[str]:
        if not self._ends_classic:
            return super().missing()
        shares = self._shares()
        found = list(unassigned(shares))
        if not in_one_epoch(shares) or not all(member.is_classic and member.is_settled for member in self._either):
            found.append("members are on their way")
        return [*found, *map(str, self.members)] if found else []

    async def judge(self) -> list[str]:
        self.reached(group_upgrades=self._count("group.upgraded"), group_downgrades=self._count("group.downgraded"))
        return await super().judge()

    def _count(self, event: str) -> int:
        return int(self.simulation.events.counts[event])

    async def _disagreement(self) -> list[str]:
        return [] if self._ends_classic else await super()._disagreement()
