"""A consumer group, its clients, the topics and the log, without a broker.

Clients have one-letter names and do what real ones do: they give up what an answer takes away before they report that
they have, and only own what an answer has given them. An answer can be lost, and a client can pause. Time moves only by
`advance`. `log` holds every record that was appended.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kavka_broker.core.consumer_group import heartbeat as rules
from kavka_broker.core.consumer_group.checks import Heartbeat, check_heartbeat
from kavka_broker.core.consumer_group.records import KEYS, replay
from kavka_broker.core.consumer_group.settings import ConsumerGroupSettings
from kavka_broker.core.consumer_group.state import ConsumerGroup, ConsumerMember
from kavka_broker.core.group.records import KeyedRecord
from kavka_broker.core.group.state import ClassicGroup
from kavka_broker.protocol.errors import BrokerError, ErrorCode

GROUP = "g"
FIRST_PARTITIONS = 4


@dataclass(slots=True)
class Topic:
    name: str
    topic_id: bytes
    partitions: dict[int, object]


class Topics:
    """The topics that exist; a topic that is created again has another id."""

    def __init__(self) -> None:
        self.by_name: dict[str, Topic] = {}
        self.changes = 0

    def get(self, name: str) -> Topic | None:
        return self.by_name.get(name)

    def by_id(self, topic_id: bytes) -> Topic | None:
        return next((topic for topic in self.by_name.values() if topic.topic_id == topic_id), None)

    def put(self, name: str, partitions: int) -> None:
        self.changes += 1
        known = self.by_name.get(name)
        topic_id = known.topic_id if known else f"{name}{self.changes:>015}".encode()
        self.by_name[name] = Topic(name, topic_id, dict.fromkeys(range(partitions)))

    def grow(self, name: str, partitions: int) -> None:
        known = self.by_name.get(name)
        self.put(name, max(partitions, len(known.partitions) if known else 0))

    def delete(self, name: str) -> None:
        self.changes += 1
        self.by_name.pop(name, None)


@dataclass(slots=True)
class Client:
    """What a consumer knows of itself. `owned`: what it consumes now."""

    name: str
    topics: tuple[str, ...]
    regex: str | None = None
    instance_id: str | None = None
    member_id: str = ""
    epoch: int = 0
    owned: dict[bytes, set[int]] = field(default_factory=dict)
    assigned: dict[bytes, set[int]] | None = None  # the last answer, as far as it is yet to be followed
    says_all: bool = True
    incarnation: int = 0

    def places(self) -> set[tuple[bytes, int]]:
        return {(topic_id, index) for topic_id, indexes in self.owned.items() for index in indexes}

    def follow(self) -> None:
        """Do what the last answer says: give up what it takes, take what it gives."""
        if self.assigned is not None:
            self.owned = {topic_id: set(indexes) for topic_id, indexes in self.assigned.items() if indexes}
            self.assigned = None

    def forget(self) -> None:
        """Abandon everything, and join again."""
        self.owned, self.assigned, self.epoch, self.says_all = {}, None, 0, True


class World:
    """A group and everything around it."""

    def __init__(self, settings: ConsumerGroupSettings | None = None, **topics: int) -> None:
        self.settings = settings or ConsumerGroupSettings(assignment_interval_ms=0)
        self.groups: dict[str, ConsumerGroup] = {}
        self.topics = Topics()
        for name, partitions in (topics or {"t": FIRST_PARTITIONS}).items():
            self.topics.put(name, partitions)
        self.clients: dict[str, Client] = {}
        self.log: list[KeyedRecord] = []
        self.now_ms = 1_000_000
        self.sessions: dict[str, int] = {}  # when each ends, by member id
        self.revocations: dict[str, tuple[int, int]] = {}  # when a member has to be ready, and its epoch
        self.computed = 0
        self.classic: ClassicGroup | None = None  # that the group has become
        self.is_rebalancing = False
        self.interval_ms = 0  # that the last answer told
        self.is_joint = False  # clients that join a group without members come together

    @property
    def group(self) -> ConsumerGroup:
        return self.groups.get(GROUP) or ConsumerGroup(GROUP)

    def member(self, name: str) -> ConsumerMember:
        return self.group.members[self.clients[name].member_id]

    # --- what clients do --------------------------------------------------------------------------------------------

    def join(self, name: str, *topics: str, regex: str | None = None, instance_id: str | None = None) -> Client:
        """A new consumer of this name; a former one is gone without a word."""
        former = self.clients.get(name)
        number = 0 if former is None else former.incarnation + 1
        named = topics or (() if regex else ("t",))
        client = Client(name, named, regex, instance_id, f"{name}{number}", incarnation=number)
        self.clients[name] = client
        return client

    def beat(self, name: str, *, is_lost: bool = False, follows: bool = True, **changes: Any) -> ErrorCode:
        """A heartbeat. With `is_lost` the client never hears of its answer; without `follows` it is slow to obey."""
        client = self.clients[name]
        if follows:
            client.follow()
        beat = Heartbeat(
            GROUP,
            client.member_id,
            client.epoch,
            client.name,
            "/127.0.0.1",
            instance_id=client.instance_id,
            rebalance_timeout_ms=60_000 if client.says_all else -1,
            topics=client.topics if client.says_all else None,
            regex=client.regex if client.says_all else None,
            owned={topic_id: sorted(indexes) for topic_id, indexes in client.owned.items()},
        )
        try:
            change = self.send(beat)
        except BrokerError as error:
            if not is_lost:
                self.refused(client, error.code)
            return error.code
        if is_lost:
            client.says_all = True
            return ErrorCode.NONE
        client.epoch, client.says_all = change.epoch, False
        if change.assigned is not None:
            client.assigned = {topic_id: set(indexes) for topic_id, indexes in change.assigned.items()}
            for topic_id in list(client.owned):  # a client stops to consume at once what an answer takes away
                client.owned[topic_id] &= client.assigned.get(topic_id, set()) if follows else client.owned[topic_id]
        return ErrorCode.NONE

    @staticmethod
    def refused(client: Client, code: ErrorCode) -> None:
        if code is not ErrorCode.UNRELEASED_INSTANCE_ID:
            client.forget()

    def leave(self, name: str, epoch: int = -1) -> ErrorCode:
        """The last heartbeat of a client, which has given up everything before it."""
        client = self.clients[name]
        client.owned, client.assigned = {}, None
        beat = Heartbeat(GROUP, client.member_id, epoch, instance_id=client.instance_id)
        try:
            self.apply(rules.leave(self.existing(), beat, self.settings, self.around(self.group)))
        except BrokerError as error:
            return error.code
        finally:
            client.forget()
        return ErrorCode.NONE

    def send(self, beat: Heartbeat) -> rules.Change:
        check_heartbeat(beat, self.settings.assignors, needs_member_id=True)
        group = self.group if beat.joins else self.existing()
        change = rules.heartbeat(group, beat, self.settings, self.around(group, beat.regex))
        self.apply(change)
        return change

    def around(self, group: ConsumerGroup, regex: str | None = None) -> rules.Surroundings:
        """What a command finds; an expression that is new to the group has been matched."""
        matched = {regex: self.matches(regex)} if regex and regex not in group.matched else {}
        return rules.Surroundings(self.topics, self.topics.changes, self.now_ms, matched, is_joint=self.is_joint)

    def matches(self, regex: str) -> frozenset[str]:
        return frozenset(name for name in self.topics.by_name if re.fullmatch(regex, name))

    def match(self) -> None:
        """Match all expressions again."""
        around = replace(
            self.around(self.group), matched={regex: self.matches(regex) for regex in self.group.expressed}
        )
        self.apply(rules.match(self.group, around))
        if self.group.expressed:
            self.group.matched_seen, self.group.matched_at_ms = self.topics.changes, self.now_ms

    def existing(self) -> ConsumerGroup:
        if GROUP not in self.groups:
            raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND)
        return self.groups[GROUP]

    # --- what a coordinator does ------------------------------------------------------------------------------------

    def apply(self, change: rules.Change) -> None:
        if change.classic is not None:
            self.classic, self.is_rebalancing = change.classic, change.has_to_rebalance
            self.sessions, self.revocations = {}, {}
            change = rules.Change(change.records)
        for record in change.records:
            self.log.append(record)
            if isinstance(record.key, KEYS):  # not the record of a classic group
                replay(self.groups, record.key, record.value)
        self.computed += change.has_computed
        self.interval_ms = change.interval_ms
        self._note_what_no_record_says(change)
        if change.revokes_ms is None:
            self.revocations.pop(change.member_id, None)
        elif change.revokes_ms >= 0:
            self.revocations[change.member_id] = (self.now_ms + change.revokes_ms, change.epoch)
        if change.epoch > 0:
            self.sessions[change.member_id] = self.now_ms + self.settings.session_timeout_ms
        for member_id in change.ended:
            self.sessions.pop(member_id, None)
            self.revocations.pop(member_id, None)

    def _note_what_no_record_says(self, change: rules.Change) -> None:
        if change.gathering is not None or change.has_computed:
            self.groups[GROUP].gathering = change.gathering
        if change.topics_seen != -1:
            self.groups[GROUP].topics_seen = change.topics_seen
        if change.has_matched_all:
            self.groups[GROUP].matched_seen, self.groups[GROUP].matched_at_ms = self.topics.changes, self.now_ms

    def advance(self, by_ms: int) -> None:
        """Let time pass: sessions end, and members that took too long to give partitions up are fenced."""
        self.now_ms += by_ms
        for member_id, ends_ms in list(self.sessions.items()):
            if ends_ms <= self.now_ms:
                self.fence(member_id)
        for member_id, (ends_ms, epoch) in list(self.revocations.items()):
            if ends_ms <= self.now_ms and self.group.members[member_id].epoch == epoch:
                self.fence(member_id)

    def fence(self, member_id: str) -> None:
        """End a member. Its client notices by itself that it has not been heard: it consumes nothing any more."""
        self.apply(rules.fence(self.group, [self.group.members[member_id]], self.settings, self.around(self.group)))
        for client in self.clients.values():
            if client.member_id == member_id:
                client.owned, client.assigned = {}, None

    def settle(self, *names: str, rounds: int = 8) -> None:
        """Heartbeats of everybody until nothing moves."""
        for _ in range(rounds):
            for name in names or tuple(self.clients):
                self.beat(name)

    def owned(self) -> Mapping[str, dict[str, list[int]]]:
        """What each client consumes, by the names of topics."""
        names = {topic.topic_id: name for name, topic in self.topics.by_name.items()}
        return {
            client.name: {
                names[topic_id]: sorted(indexes) for topic_id, indexes in sorted(client.owned.items()) if indexes
            }
            for client in self.clients.values()
        }
