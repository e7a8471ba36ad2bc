"""The state after a live run equals the state after a replay: of all records, and of a snapshot's."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

from kavka_broker.controller.snapshot_files import build, read
from kavka_broker.core.authorization.access_rules import Rule, RuleFilter
from kavka_broker.core.decision import Decision
from kavka_broker.core.metadata.decide import acls, credentials
from kavka_broker.core.metadata.decide.configs import Change, Operation, alter_configs
from kavka_broker.core.metadata.decide.delegation_tokens import Lifetimes, NewToken, create, expire, renew, sweep
from kavka_broker.core.metadata.decide.heartbeats import Heartbeat, heartbeat, leave
from kavka_broker.core.metadata.decide.producer_ids import allocate
from kavka_broker.core.metadata.decide.quotas import Alteration, alter
from kavka_broker.core.metadata.decide.registrations import register
from kavka_broker.core.metadata.decide.topics import (
    Created,
    CreateTopic,
    Defaults,
    GrowTopic,
    create_topics,
    delete_topic,
    grow_topics,
)
from kavka_broker.core.metadata.image.configs import Resource, ResourceType
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.core.metadata.image.topics import NO_LEADER
from kavka_broker.protocol.errors import BrokerError
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.alter_user_scram_credentials_request import (
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kavka_broker.protocol.messages.metadata.feature_level_record import FeatureLevelRecord
from kavka_broker.protocol.metadata_records import frame, unframe
from tests.support.cluster import START_MS, introduction, uuid

BROKERS = st.integers(1, 4)
NAMES = st.sampled_from(["a", "b", "c", "a.b", "a_b", "__consumer_offsets"])
PARTS = st.lists(
    st.tuples(st.sampled_from(["user", "client-id", "ip"]), st.sampled_from([None, "alice", "<default>", "192.0.2.7"])),
    min_size=1,
    max_size=2,
)
LIMITS = st.lists(
    st.tuples(
        st.sampled_from(["producer_byte_rate", "request_percentage", "connection_creation_rate"]),
        st.sampled_from([None, 1.0, 1024.0, 0.5]),
    ),
    max_size=3,
)
CHANGES = st.lists(
    st.builds(
        Change,
        st.sampled_from(["retention.ms", "cleanup.policy", "log.cleaner.threads", "consumer.session.timeout.ms"]),
        st.sampled_from(list(Operation)),
        st.sampled_from([None, "5000", "compact"]),
    ),
    max_size=3,
)
RESOURCES = st.one_of(
    st.builds(Resource, st.just(ResourceType.TOPIC), NAMES),
    st.builds(Resource, st.just(ResourceType.BROKER), st.sampled_from(["", "1"])),
    st.builds(Resource, st.just(ResourceType.GROUP), st.just("g")),
)

RULES = st.builds(Rule, st.sampled_from([2, 4]), NAMES, st.sampled_from([3, 4]), *map(st.just, ("User:a", "*", 3, 3)))

LIFETIMES = Lifetimes(max_ms=10, renewal_ms=4)


class LiveRun(RuleBasedStateMachine):
    """Commands as they come, refused ones among them, against images that only ever replay."""

    ids = Bundle("ids")

    def __init__(self) -> None:
        super().__init__()
        self.live = Metadata()
        self.follower = Metadata()
        self.former, self.former_records = Metadata(), list[Message]()
        self.history: list[bytes] = []
        self.numbers = 0
        self._enact([FeatureLevelRecord("metadata.version", 30)])

    def _enact(self, records: list[Message]) -> None:
        """Replay here, and there what went over the wire."""
        for record in records:
            self.live.replay(record)
            value = frame(record)
            self.history.append(value)
            self.follower.replay(unframe(value))

    def _decide(self, decision: Decision[object]) -> object:
        self._enact(list(decision.records))
        return decision.response

    def _next(self) -> int:
        self.numbers += 1
        return self.numbers

    @rule(broker_id=BROKERS, rack=st.sampled_from([None, "a", "b"]))
    def broker_starts(self, broker_id: int, rack: str | None) -> None:
        epoch = self._decide(register(self.live, introduction(broker_id, rack, self._next())))
        assert isinstance(epoch, int)
        self._decide(heartbeat(self.live, Heartbeat(broker_id, epoch, self.live.offset)))
        registration = self.live.brokers.get(broker_id)
        assert registration is not None
        assert registration.epoch == epoch

    @rule(broker_id=BROKERS)
    def broker_leaves(self, broker_id: int) -> None:
        self._decide(leave(self.live, broker_id))

    @rule(target=ids, name=NAMES, partitions=st.integers(-1, 4), factor=st.integers(-1, 3))
    def topic_is_created(self, name: str, partitions: int, factor: int) -> object:
        command = CreateTopic(name, uuid(self._next()), partitions, factor, configs={"retention.ms": "1000"})
        decision = create_topics(self.live, [command], Defaults(2, 1))
        self._decide(decision)
        (result,) = decision.response
        return result.topic_id if isinstance(result, Created) else multiple()

    @rule(topic_id=consumes(ids))
    def topic_is_deleted(self, topic_id: bytes) -> None:
        topic = self.live.topics.by_id(topic_id)
        assert topic is not None
        self._decide(delete_topic(topic))

    @rule(name=NAMES, count=st.integers(0, 6))
    def topic_grows(self, name: str, count: int) -> None:
        self._decide(grow_topics(self.live, [GrowTopic(name, count)]))

    @rule(resource=RESOURCES, changes=CHANGES)
    def configs_are_altered(self, resource: Resource, changes: list[Change]) -> None:
        try:
            decision = alter_configs(self.live, resource, changes)
        except BrokerError:
            return
        self._decide(decision)

    @rule(parts=PARTS, limits=LIMITS)
    def quotas_are_altered(self, parts: list[tuple[str, str | None]], limits: list[tuple[str, float | None]]) -> None:
        try:
            decision = alter(self.live.quotas, Alteration(parts, limits))
        except BrokerError:
            return
        self._decide(decision)

    @rule(rules=st.lists(RULES, min_size=1, max_size=3))
    def access_rules_are_created(self, rules: list[Rule]) -> None:
        self._decide(acls.create(self.live.acls, rules, [uuid(self._next()) for _ in rules]))

    @rule(name=NAMES)
    def access_rules_are_deleted(self, name: str) -> None:
        self._decide(acls.delete(self.live.acls, [RuleFilter(1, name, 2, None, None, 1, 1)]))

    @rule(user=NAMES, mechanism=st.sampled_from([1, 2, 3]), iterations=st.sampled_from([4096, 8192, 1]))
    def passwords_are_given(self, user: str, mechanism: int, iterations: int) -> None:
        given = ScramCredentialUpsertion(user, mechanism, iterations, b"salt", b"password of %d" % self._next())
        self._decide(credentials.alter(self.live.credentials, [], [given]))

    @rule(user=NAMES, mechanism=st.sampled_from([1, 2]))
    def passwords_are_taken_away(self, user: str, mechanism: int) -> None:
        self._decide(credentials.alter(self.live.credentials, [ScramCredentialDeletion(user, mechanism)], []))

    @rule(user=NAMES, renewers=st.lists(NAMES, max_size=2), lifetime_ms=st.integers(-1, 5))
    def token_is_made(self, user: str, renewers: list[str], lifetime_ms: int) -> None:
        wanted = NewToken(
            f"{self._next()}", f"User:{user}", "User:a", [f"User:{each}" for each in renewers], lifetime_ms
        )
        self._decide(create(self.live.tokens, wanted, LIFETIMES, self.numbers))

    @rule(user=NAMES, period_ms=st.integers(-1, 3), is_end=st.booleans())
    def first_token_is_renewed_or_ended(self, user: str, period_ms: int, is_end: bool) -> None:
        token_id, tokens = next(iter(self.live.tokens.by_id), None), self.live.tokens
        try:
            if is_end:
                self._decide(expire(tokens, token_id, f"User:{user}", period_ms, self.numbers))
            else:
                self._decide(renew(tokens, token_id, f"User:{user}", period_ms, LIFETIMES, self.numbers))
        except BrokerError:
            return

    @rule()
    def tokens_are_swept(self) -> None:
        self._decide(sweep(self.live.tokens, self.numbers))
        assert not any(token.is_over(self.numbers) for token in self.live.tokens.by_id.values())

    @rule()
    def image_is_copied(self) -> None:
        """The copy follows from here on, and what it was made of goes on by itself."""
        self.former, self.follower = self.follower, self.live.copy()
        self.former_records = list(self.former.records())

    @rule(broker_id=BROKERS)
    def producer_ids_are_given(self, broker_id: int) -> None:
        self._decide(allocate(self.live.producer_ids, broker_id, 0))

    @invariant()
    def who_follows_sees_the_same(self) -> None:
        assert list(self.follower.records()) == list(self.live.records())
        assert self.follower.offset == self.live.offset
        assert list(self.former.records()) == self.former_records

    @invariant()
    def only_the_living_lead_and_from_the_in_sync(self) -> None:
        for topic in self.live.topics:
            assert sorted(topic.partitions) == list(range(len(topic.partitions)))
            for state in topic.partitions.values():
                assert state.isr
                assert set(state.isr) <= set(state.replicas)
                if state.leader != NO_LEADER:
                    assert state.leader in state.isr
                    assert self.live.brokers.is_usable(state.leader)

    @invariant()
    def partitions_are_counted(self) -> None:
        assert self.live.topics.partition_count == sum(len(topic.partitions) for topic in self.live.topics)

    def teardown(self) -> None:
        """From nothing, and from a snapshot: the same."""
        again = Metadata()
        for value in self.history:
            again.replay(unframe(value))
        assert list(again.records()) == list(self.live.records())
        data = build([], self.live.records(), epoch=1, last_timestamp_ms=0, now_ms=START_MS)
        restored = Metadata()
        for record in read(data):
            restored.replay(record)
        assert list(restored.records()) == list(self.live.records())
        assert restored == self.live
        assert restored.topics == self.live.topics
        assert restored.configs == self.live.configs
        assert restored.quotas == self.live.quotas
        assert restored.tokens == self.live.tokens


TestLiveRun = LiveRun.TestCase
TestLiveRun.settings = settings(max_examples=40, stateful_step_count=20)
