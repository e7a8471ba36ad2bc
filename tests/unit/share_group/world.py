"""A share group, its clients, the topics, the share coordinator and the log, without a broker.

Clients have one-letter names. An answer can be lost, and a client can pause. The share coordinator answers when the
test says so: `asked` are the requests that it has yet to answer, the oldest first. Time moves only by `advance`. `log`
holds every record that was appended.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from kavka_broker.core.consumer_group.heartbeat import Surroundings
from kavka_broker.core.consumer_group.settings import MEMBERS_BYTES_MAX
from kavka_broker.core.group.records import KeyedRecord
from kavka_broker.core.share_group import administration
from kavka_broker.core.share_group import heartbeat as rules
from kavka_broker.core.share_group import records as records_of_groups
from kavka_broker.core.share_group.checks import ShareHeartbeat, check_heartbeat
from kavka_broker.core.share_group.heartbeat import ShareChange
from kavka_broker.core.share_group.settings import ShareGroupSettings
from kavka_broker.core.share_group.state import NamedPartitions, ShareGroup, ShareMember
from kavka_broker.core.share_group.state_partitions import Partitions
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from tests.unit.consumer_group.world import Topics

GROUP = "g"


@dataclass(slots=True)
class Client:
    """What a share consumer knows of itself. `assigned`: what the last answer with an assignment gave."""

    name: str
    topics: tuple[str, ...]
    member_id: str = ""
    epoch: int = 0
    assigned: dict[bytes, frozenset[int]] = field(default_factory=dict)
    says_all: bool = True
    incarnation: int = 0

    def forget(self) -> None:
        """Abandon everything, and join again."""
        self.assigned, self.epoch, self.says_all = {}, 0, True


class World:
    """A share group and everything around it."""

    def __init__(self, settings: ShareGroupSettings | None = None, **topics: int) -> None:
        self.settings = settings or ShareGroupSettings(assignment_interval_ms=0)
        self.groups: dict[str, ShareGroup] = {}
        self.topics = Topics()
        for name, partitions in (topics or {"t": 4}).items():
            self.topics.put(name, partitions)
        self.clients: dict[str, Client] = {}
        self.log: list[KeyedRecord] = []
        self.now_ms = 1_000_000
        self.sessions: dict[str, int] = {}  # when each ends, by member id
        self.asked: list[Partitions] = []
        self.initialized: set[tuple[bytes, int]] = set()  # the states that the share coordinator has
        self.unanswered: set[tuple[bytes, int]] = set()  # that it was asked for, and never will answer
        self.computed = 0
        self.interval_ms = 0  # that the last answer told

    @property
    def group(self) -> ShareGroup:
        return self.groups.get(GROUP) or ShareGroup(GROUP)

    def member(self, name: str) -> ShareMember:
        return self.group.members[self.clients[name].member_id]

    def existing(self) -> ShareGroup:
        if GROUP not in self.groups:
            raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND)
        return self.groups[GROUP]

    # --- what clients do --------------------------------------------------------------------------------------------

    def join(self, name: str, *topics: str) -> Client:
        """A new consumer of this name; a former one is gone without a word."""
        former = self.clients.get(name)
        number = 0 if former is None else former.incarnation + 1
        self.clients[name] = Client(name, topics or ("t",), f"{name}{number}", incarnation=number)
        return self.clients[name]

    def beat(self, name: str, *, is_lost: bool = False) -> ErrorCode:
        """A heartbeat. With `is_lost` the client never hears of its answer."""
        client = self.clients[name]
        named = client.topics if client.says_all else None
        beat = ShareHeartbeat(GROUP, client.member_id, client.epoch, client.name, "/127.0.0.1", None, named)
        try:
            change = self.send(beat)
        except BrokerError as error:
            if not is_lost:
                client.forget()
            return error.code
        if is_lost:
            client.says_all = True
            return ErrorCode.NONE
        client.epoch, client.says_all = change.epoch, False
        if change.assigned is not None:
            client.assigned = dict(change.assigned)
        return ErrorCode.NONE

    def leave(self, name: str) -> ErrorCode:
        client = self.clients[name]
        beat = ShareHeartbeat(GROUP, client.member_id, -1)
        try:
            self.apply(rules.leave(self.existing(), beat, self.topics))
        except BrokerError as error:
            return error.code
        finally:
            client.forget()
        return ErrorCode.NONE

    def send(self, beat: ShareHeartbeat) -> ShareChange:
        check_heartbeat(beat)
        group = self.group if beat.joins else self.existing()
        is_steady = rules.is_steady(group, beat, self.topics.changes)
        around = Surroundings(self.topics, self.topics.changes, self.now_ms)
        change = rules.heartbeat(group, beat, self.settings, around)
        assert not is_steady or not change.records, "a steady heartbeat has something to do"
        self.apply(change)
        self.sessions[change.member_id] = self.now_ms + self.settings.session_timeout_ms
        if change.initialize:
            self.asked.append({topic_id: topic.partitions for topic_id, topic in change.initialize.items()})
        return change

    # --- what the share coordinator and operators do ----------------------------------------------------------------

    def answer(self, *, fails: Callable[[int], bool] = lambda _: False) -> None:
        """The share coordinator answers its oldest request: with an error for the partitions that `fails` names."""
        if not self.asked:
            return
        asked = self.asked.pop(0)
        done = {key: frozenset(index for index in some if not fails(index)) for key, some in asked.items()}
        failed = {key: some - done[key] for key, some in asked.items()}
        self.initialized |= {(key, index) for key, some in done.items() for index in some}
        self.command(partial(administration.settle, done=done, failed=failed))

    def never_answer(self) -> None:
        """The share coordinator does not answer its oldest request, or the broker that has asked is gone."""
        for asked in self.asked[:1]:
            self.unanswered |= {(key, index) for key, some in asked.items() for index in some}
        del self.asked[:1]

    def command(self, decide: Callable[[ShareGroup], ShareChange], *, may_create: bool = False) -> ErrorCode:
        try:
            self.apply(decide(self.group if may_create else self.existing()))
        except BrokerError as error:
            return error.code
        return ErrorCode.NONE

    def alter(self, name: str, *indexes: int, room_bytes: int = MEMBERS_BYTES_MAX) -> ErrorCode:
        topic = self.topics.get(name)
        wanted = {} if topic is None else {topic.topic_id: NamedPartitions(name, frozenset(indexes))}
        code = self.command(partial(administration.alter, wanted=wanted, room_bytes=room_bytes), may_create=True)
        if code is ErrorCode.NONE and wanted:
            self.asked.append({topic_id: topic.partitions for topic_id, topic in wanted.items()})
        return code

    def delete_topic_offsets(self, *names: str) -> ErrorCode:
        topics = [topic for topic in map(self.topics.get, names) if topic is not None]
        code = self.command(partial(administration.delete_topics, wanted=topics))
        return code or self.command(partial(administration.deleted, topic_ids=[topic.topic_id for topic in topics]))

    def delete_group(self, *, is_answered: bool = True) -> ErrorCode:
        code = self.command(partial(administration.delete_all, topics=self.topics))
        if code is ErrorCode.NONE and is_answered:
            self.append(records_of_groups.group_tombstones(self.group))
        return code

    # --- what a coordinator does ------------------------------------------------------------------------------------

    def append(self, records: list[KeyedRecord]) -> None:
        for record in records:
            self.log.append(record)
            records_of_groups.replay(self.groups, record.key, record.value)

    def apply(self, change: ShareChange) -> None:
        if change.records and GROUP in self.groups:
            self.groups[GROUP] = self.groups[GROUP].copy()
        self.append(change.records)
        self.computed += change.has_computed
        self.interval_ms = change.interval_ms
        group = self.groups.get(GROUP)
        if group is not None:
            if change.topics_seen != -1:
                group.topics_seen = change.topics_seen
            group.is_settled = change.is_settled
            group.tried_at_ms.update(dict.fromkeys(change.initialize, self.now_ms))
        for member_id in change.ended:
            self.sessions.pop(member_id, None)

    def advance(self, by_ms: int) -> None:
        """Let time pass: sessions end."""
        self.now_ms += by_ms
        for member_id, ends_ms in list(self.sessions.items()):
            if ends_ms <= self.now_ms:
                self.apply(rules.fence(self.group, self.group.members[member_id], self.topics))

    def settle(self, *names: str, rounds: int = 6) -> None:
        """Heartbeats of everybody, and answers of the share coordinator, until nothing moves."""
        for _ in range(rounds):
            for name in names or tuple(self.clients):
                self.beat(name)
            while self.asked:
                self.answer()

    def assigned(self) -> dict[str, dict[str, list[int]]]:
        """What each client has, by the names of topics."""
        names = {topic.topic_id: name for name, topic in self.topics.by_name.items()}
        return {
            client.name: {names[topic_id]: sorted(indexes) for topic_id, indexes in sorted(client.assigned.items())}
            for client in self.clients.values()
        }
