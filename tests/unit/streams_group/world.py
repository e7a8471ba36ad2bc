"""A streams group, its clients, the topics and the log, without a broker.

Clients have names of a process and a thread, as in `a1`, and do what real ones do: they close what an answer takes away
before they report that they have, and only run what an answer has given them. An answer can be lost. Time moves only by
`advance`. `log` holds every record that was appended.
"""

from dataclasses import dataclass
from typing import Any

from kavka_broker.core.consumer_group.heartbeat import Surroundings
from kavka_broker.core.group.records import KeyedRecord
from kavka_broker.core.streams_group import heartbeat as rules
from kavka_broker.core.streams_group.checks import StreamsHeartbeat
from kavka_broker.core.streams_group.records import replay
from kavka_broker.core.streams_group.settings import StreamsGroupSettings
from kavka_broker.core.streams_group.state import StreamsGroup, StreamsMember
from kavka_broker.core.streams_group.tasks import TaskTarget
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages import streams_group_heartbeat_request as sent
from tests.unit.consumer_group.world import Topics

GROUP = "g"
AT_ONCE = StreamsGroupSettings(assignment_interval_ms=0, initial_rebalance_delay_ms=0)
NOTHING = TaskTarget()


def topology(epoch: int = 0) -> sent.Topology:
    """Records of `t` are counted behind a repartition topic `r`, in a store whose changelog is `c`."""
    return sent.Topology(
        epoch,
        [
            sent.Subtopology("0", source_topics=["t"], repartition_sink_topics=["r"]),
            sent.Subtopology(
                "1",
                repartition_source_topics=[sent.TopicInfo("r")],
                state_changelog_topics=[
                    sent.TopicInfo("c", topic_configs=[sent.KeyValue("cleanup.policy", "compact")])
                ],
            ),
        ],
    )


@dataclass(slots=True)
class Client:
    """What a stream thread knows of itself. `owned`: the tasks that it runs now."""

    name: str
    member_id: str
    epoch: int = 0
    owned: TaskTarget = NOTHING
    assigned: TaskTarget | None = None  # the last answer, as far as it is yet to be followed
    says_all: bool = True
    endpoint_epoch: int = -1
    incarnation: int = 0

    def follow(self) -> None:
        """Do what the last answer says: close what it takes, run what it gives."""
        if self.assigned is not None:
            self.owned, self.assigned = self.assigned, None

    def forget(self) -> None:
        """Abandon everything, and join again."""
        self.owned, self.assigned, self.epoch, self.says_all = NOTHING, None, 0, True


class World:
    """A group and everything around it."""

    def __init__(self, settings: StreamsGroupSettings = AT_ONCE, **topics: int) -> None:
        self.settings = settings
        self.groups: dict[str, StreamsGroup] = {}
        self.topics = Topics()
        for name, partitions in (topics or {"t": 2, "r": 2, "c": 2}).items():
            self.topics.put(name, partitions)
        self.clients: dict[str, Client] = {}
        self.log: list[KeyedRecord] = []
        self.now_ms = 1_000_000
        self.sessions: dict[str, int] = {}  # when each ends, by member id
        self.revocations: dict[str, tuple[int, int]] = {}  # when a member has to be ready, and its epoch
        self.delay_ends_ms: int | None = None
        self.computed = 0
        self.answer = rules.StreamsChange()  # the last

    @property
    def group(self) -> StreamsGroup:
        return self.groups.get(GROUP) or StreamsGroup(GROUP)

    def state(self) -> str:
        return self.group.state.value

    def targets(self) -> int:
        """How many targets have been computed."""
        return self.computed

    def member(self, name: str) -> StreamsMember:
        return self.group.members[self.clients[name].member_id]

    # --- what clients do --------------------------------------------------------------------------------------------

    def join(self, name: str) -> Client:
        """A new thread of this name; a former one is gone without a word."""
        former = self.clients.get(name)
        number = 0 if former is None else former.incarnation + 1
        self.clients[name] = client = Client(name, f"{name}-{number}", incarnation=number)
        return client

    def beat(self, name: str, *, is_lost: bool = False, follows: bool = True, **said: Any) -> ErrorCode:
        """A heartbeat. With `is_lost` the client never hears of its answer; without `follows` it is slow to obey."""
        client = self.clients[name]
        if follows:
            client.follow()
        says: dict[str, Any] = {"owned": client.owned, "endpoint_epoch": client.endpoint_epoch}
        if client.says_all:
            says |= {"rebalance_timeout_ms": 60_000, "process_id": name[0]}
        if client.epoch == 0:
            says["topology"] = topology()
        beat = StreamsHeartbeat(GROUP, client.member_id, client.epoch, name, "/127.0.0.1", **{**says, **said})
        try:
            change = self.send(beat)
        except BrokerError as error:
            if not is_lost:
                client.forget()
            return error.code
        if is_lost:
            client.says_all = True
            return ErrorCode.NONE
        client.epoch, client.says_all, client.endpoint_epoch = change.epoch, False, change.endpoint_epoch
        if change.assigned is not None:
            client.assigned = change.assigned.tasks
        return ErrorCode.NONE

    def leave(self, name: str, **said: Any) -> ErrorCode:
        """The last heartbeat of a client, which has closed all tasks before it."""
        client = self.clients[name]
        client.owned, client.assigned = NOTHING, None
        try:
            self.apply(rules.leave(self.existing(), StreamsHeartbeat(GROUP, client.member_id, -1, **said)))
        except BrokerError as error:
            return error.code
        finally:
            client.forget()
        return ErrorCode.NONE

    def send(self, beat: StreamsHeartbeat) -> rules.StreamsChange:
        """Raises BrokerError."""
        group = self.group if beat.joins else self.existing()
        is_delayed = self.delay_ends_ms is not None
        change = rules.heartbeat(group, beat, self.settings, self.around(), is_delayed=is_delayed)
        self.apply(change)
        return change

    def around(self, **fields: Any) -> Surroundings:
        return Surroundings(self.topics, self.topics.changes, self.now_ms, **fields)

    def existing(self) -> StreamsGroup:
        """Raises BrokerError."""
        if GROUP not in self.groups:
            raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND)
        return self.groups[GROUP]

    # --- what a coordinator does ------------------------------------------------------------------------------------

    def apply(self, change: rules.StreamsChange) -> None:
        for record in change.records:
            self.log.append(record)
            replay(self.groups, record.key, record.value)
        self.answer = change
        self.computed += change.has_computed
        group = self.groups[GROUP]
        if change.configured is not None:
            group.configured, group.topics_seen = change.configured, change.topics_seen
        group.endpoint_epoch, group.shutdown_by = change.endpoint_epoch, change.shutdown_by if group.members else None
        if change.delay_ms is not None and self.delay_ends_ms is None:
            self.delay_ends_ms = self.now_ms + change.delay_ms
        if change.revokes_ms is None:
            self.revocations.pop(change.member_id, None)
        elif change.revokes_ms >= 0:
            self.revocations[change.member_id] = (self.now_ms + change.revokes_ms, change.epoch)
        if change.epoch > 0:
            self.sessions[change.member_id] = self.now_ms + self.settings.session_timeout_ms
        for member_id in change.ended:
            self.sessions.pop(member_id, None)
            self.revocations.pop(member_id, None)

    def reload(self) -> None:
        """Another coordinator takes over: what is not in the log is lost."""
        groups = dict[str, StreamsGroup]()
        for record in self.log:
            replay(groups, record.key, record.value)
        self.groups, self.delay_ends_ms = groups, None

    def advance(self, by_ms: int) -> None:
        """Let time pass: a first target is computed, sessions end, and members that are slow to close are fenced."""
        self.now_ms += by_ms
        if self.delay_ends_ms is not None and self.delay_ends_ms <= self.now_ms:
            self.delay_ends_ms = None
            if GROUP in self.groups:
                self.apply(rules.assign_delayed(self.group, self.settings, self.around()))
        for member_id, ends_ms in list(self.sessions.items()):
            if ends_ms <= self.now_ms:
                self.fence(member_id)
        for member_id, (ends_ms, epoch) in list(self.revocations.items()):
            if ends_ms <= self.now_ms and self.group.members[member_id].epoch == epoch:
                self.fence(member_id)

    def fence(self, member_id: str) -> None:
        """End a member. Its client notices by itself that it has not been heard: it runs nothing any more."""
        self.apply(rules.fence(self.group, self.group.members[member_id]))
        for client in self.clients.values():
            if client.member_id == member_id:
                client.owned, client.assigned = NOTHING, None

    def settle(self, *names: str, rounds: int = 8) -> None:
        """Heartbeats of everybody until nothing moves."""
        for _ in range(rounds):
            for name in names or tuple(self.clients):
                self.beat(name)
        for client in self.clients.values():
            client.follow()

    def active(self) -> dict[str, list[str]]:
        """The active tasks that each client runs."""
        return {
            client.name: sorted(f"{part}_{index}" for part, indexes in client.owned.active.items() for index in indexes)
            for client in self.clients.values()
        }
