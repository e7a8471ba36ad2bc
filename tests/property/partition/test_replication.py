"""Whatever happens to three replicas, in whatever order: nothing that was acknowledged is lost, and logs agree.

The invariants carry the names that they have in the TLA+ specifications of Kafka's replication.
"""

import asyncio
from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from kavka_broker.core.metadata.image.topics import NO_LEADER
from kavka_broker.protocol.errors import BrokerError
from tests.unit.partition.world import Node, World, records_of

MIN_ISR = 2
BROKERS = 3

nodes = st.integers(1, BROKERS)
steps = st.one_of(
    st.tuples(st.just("produce"), nodes),
    st.tuples(st.just("produce"), st.just(0)),
    st.tuples(st.just("fetch"), nodes),
    st.tuples(st.just("fetch"), nodes),
    st.tuples(st.just("fetch"), nodes),
    st.tuples(st.sampled_from(["isolate", "heal", "fence", "kill", "pull", "start", "elect"]), nodes),
    st.tuples(st.sampled_from(["advance", "answer", "settle"]), st.just(0)),
)


class Play:
    """A world and what its clients were told."""

    def __init__(self, seed: int) -> None:
        self.world = World(BROKERS, min_isr=MIN_ISR, seed=seed)
        self.waiting: list[tuple[int, bytes, asyncio.Future[None]]] = []
        self.acknowledged: dict[int, bytes] = {}
        self.values = 0
        self.unsynced: set[int] = set()

    # --- steps --------------------------------------------------------------------------------------------------

    def step(self, what: str, number: int) -> None:
        player: Callable[[Node], None] = getattr(self, what)
        player(self.world.nodes[number or max(1, self.world.state.leader)])

    def produce(self, node: Node) -> None:
        if node.partition is None or not node.partition.is_leader:
            return
        self.values += 1
        value = b"%d" % self.values
        try:
            offset, committed = self.world.produce(node, value, -1)
        except BrokerError:
            return
        assert committed is not None, "three replicas, and committed by one"
        self.waiting.append((offset, value, committed))

    def fetch(self, node: Node) -> None:
        if node.partition is not None:
            self.world.fetch(node)

    def isolate(self, node: Node) -> None:
        node.is_isolated = True

    def heal(self, node: Node) -> None:
        node.is_isolated = False
        if node.partition is not None:
            self.world.tell(node)

    def fence(self, node: Node) -> None:
        """The session ends, or begins again."""
        if not node.is_fenced:
            self.world.fence(node)
        elif node.partition is not None and not node.is_isolated:
            self.world.unfence(node)

    def kill(self, node: Node) -> None:
        self._stop(node, loses_power=False)

    def pull(self, node: Node) -> None:
        # The last of the in-sync set may hold records that no other has: their fate then is not replication's.
        others = [n for n in self.world.state.isr if n != node.node_id]
        self._stop(node, loses_power=bool(others))

    def _stop(self, node: Node, *, loses_power: bool) -> None:
        if node.partition is None:
            return
        self.world.stop(node, loses_power=loses_power)
        if not node.is_fenced:
            self.world.fence(node)

    def start(self, node: Node) -> None:
        if node.partition is None:
            node.is_isolated = False
            self.world.start(node)
            self.world.unfence(node)

    def elect(self, node: Node) -> None:
        state = self.world.state
        if node.node_id in state.isr and state.leader not in (node.node_id, NO_LEADER) and not node.is_fenced:
            self.world.elect(node.node_id)

    def advance(self, _: Node) -> None:
        self.world.clock.time_ms += 20_000
        for node in self.world.alive:
            if node.partition is not None:
                node.partition.check_in_sync()

    def answer(self, _: Node) -> None:
        self.world.answer_proposals()

    def settle(self, _: Node) -> None:
        self.world.settle()

    # --- invariants ---------------------------------------------------------------------------------------------

    def check(self) -> None:
        self._note_acknowledged()
        logs = {n.node_id: records_of(n.partition) for n in self.world.alive if n.partition is not None}
        self.leader_completeness(logs)
        self.log_matching(logs)

    def _note_acknowledged(self) -> None:
        still = []
        for offset, value, future in self.waiting:
            if not future.done():
                still.append((offset, value, future))
            elif future.exception() is None:
                assert self.acknowledged.get(offset, value) == value, "InconsistentOffsets"
                self.acknowledged[offset] = value
        self.waiting = still

    def leader_completeness(self, logs: dict[int, list[tuple[int, int, bytes]]]) -> None:
        """The leader, and every replica that may be elected, has every acknowledged record."""
        for node_id in self.world.state.isr:
            if node_id not in logs:
                continue
            partition = self.world.nodes[node_id].partition
            assert partition is not None
            if partition.leader_epoch != self.world.state.leader_epoch:
                continue  # it has not heard of its leader yet, and will cut its log when it does
            found = {offset: value for offset, _, value in logs[node_id]}
            lost = {offset for offset, value in self.acknowledged.items() if found.get(offset) != value}
            if partition.is_leader:
                assert not lost, f"LeaderCompleteness: {node_id} lacks {lost}"

    def log_matching(self, logs: dict[int, list[tuple[int, int, bytes]]]) -> None:
        """The same epoch at the same offset: the same record, and the same before it."""
        everything = list(logs.values())
        for index, one in enumerate(everything):
            for other in everything[index + 1 :]:
                by_offset = {(offset, epoch): (at, value) for at, (offset, epoch, value) in enumerate(other)}
                for at, (offset, epoch, value) in enumerate(one):
                    twin = by_offset.get((offset, epoch))
                    if twin is not None:
                        assert twin[1] == value, f"LogMatching at {offset}"
                        assert one[:at] == other[: twin[0]], f"LogMatching before {offset}"


@settings(max_examples=150)
@given(st.lists(steps, max_size=60), st.integers(0, 2**32))
def test_nothing_acknowledged_is_lost(plan: list[tuple[str, int]], seed: int) -> None:
    async def play() -> None:
        one = Play(seed)
        for what, number in plan:
            one.step(what, number)
            one.check()
        converge(one)

    asyncio.run(play())


def converge(play: Play) -> None:
    """When all is well again, all logs are equal and everything in them is committed."""
    world = play.world
    for node in world.nodes.values():
        node.is_isolated = False
        if node.partition is None:
            world.start(node)
        world.tell(node)
    for node in world.nodes.values():
        if node.is_fenced:
            world.unfence(node)
    if world.state.leader == NO_LEADER:
        world.elect(world.state.isr[0])
    world.settle()
    play.advance(world.nodes[1])
    world.settle()
    play.check()
    logs = [records_of(node.partition) for node in world.nodes.values() if node.partition is not None]
    assert logs[0] == logs[1] == logs[2]
    assert {node.partition.high_watermark for node in world.alive if node.partition} == {len(logs[0])}
    assert sorted(world.state.isr) == [1, 2, 3]
