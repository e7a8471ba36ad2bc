"""Limits that a topic sets to all of its clients together: whose bytes count, what a change does, what is told."""

from kavka_broker.core.config.topic import LogConfig, with_overrides
from kavka_broker.core.config.topic_table import LONG_MAX
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.core.quota.entity import QuotaKey, TopicEntity
from kavka_broker.core.quota.rate import SampleWindow
from kavka_broker.core.quota.topic_limits import limits_of
from kavka_broker.loop.slices import COST_PER_YIELD, Cost, at_once
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.metadata.config_record import ConfigRecord
from kavka_broker.protocol.messages.metadata.remove_topic_record import RemoveTopicRecord
from kavka_broker.protocol.messages.metadata.topic_record import TopicRecord
from kavka_broker.quotas.client_quotas import ClientQuotas
from kavka_broker.quotas.entity_usage import ENTITIES_MAX, EntityUsage
from kavka_broker.quotas.sensor import Holding
from kavka_broker.quotas.topic_quota import OWED_MS_MAX, LimitedTopic, TopicQuota
from kavka_broker.quotas.updates import TopicTerms
from tests.support.cluster import StillClock

LIMIT = 1000
WINDOW = SampleWindow()
BURST = int(WINDOW.value_max(LIMIT))
TOPIC, OF_PRODUCERS, OF_CONSUMERS = 2, "kavka.topic.producer.byte.rate", "kavka.topic.consumer.byte.rate"
ID, OTHER_ID = b"1" * 16, b"2" * 16
TOGETHER, APART = TopicEntity("t"), TopicEntity("t", each_partition=True)


def quota(*limits: tuple[TopicEntity, int]) -> TopicQuota:
    made = TopicQuota(WINDOW)
    made.limit("t", ID, dict(limits))
    return made


def delay_ms(of: TopicQuota, sizes: dict[int, int], now_ms: int = 0) -> int:
    return max((delay for delay, _ in charged(of.limited["t"], sizes, now_ms)), default=0)


def charged(topic: LimitedTopic, sizes: dict[int, int], now_ms: int = 0) -> list[tuple[int, Holding]]:
    return [(delay, limit.holding()) for delay, limit in at_once(topic.charge(sizes, now_ms, Cost()))]


def usages(of: TopicQuota, now_ms: int = 0) -> list[EntityUsage]:
    return at_once(of.usages(now_ms))


class Followed:
    """Quotas that follow an image, which replays what it is given."""

    def __init__(self) -> None:
        self.metadata, self.quotas = Metadata(), ClientQuotas()
        self.clock = StillClock(0)
        self.terms = TopicTerms(self.quotas, self.metadata, self.clock)

    def replay(self, *records: Message) -> None:
        for record in records:
            self.metadata.replay(record)
        self.terms.apply(records)

    @property
    def produced(self) -> dict[str, int]:
        return {str(line.entity): int(line.limit) for line in usages(self.quotas.produced)}


def made(topic_id: bytes = ID, **limits: str) -> list[Message]:
    keys = {"producers": OF_PRODUCERS, "consumers": OF_CONSUMERS}
    configs = [ConfigRecord(TOPIC, "t", keys[name], value) for name, value in limits.items()]
    return [TopicRecord("t", topic_id), *configs]


def test_a_topic_has_no_limit_unless_its_config_sets_one() -> None:
    assert limits_of("t", LogConfig()) == []
    none = with_overrides(LogConfig(), {OF_PRODUCERS: str(LONG_MAX)})
    assert limits_of("t", none) == []


def test_each_config_is_a_limit_of_its_own() -> None:
    names = ("topic.producer", "partition.producer", "topic.consumer", "partition.consumer")
    config = with_overrides(LogConfig(), {f"kavka.{name}.byte.rate": str(n) for n, name in enumerate(names, 1)})
    assert limits_of("t", config) == [
        (QuotaKey.PRODUCER_BYTE_RATE, TOGETHER, 1),
        (QuotaKey.PRODUCER_BYTE_RATE, APART, 2),
        (QuotaKey.CONSUMER_BYTE_RATE, TOGETHER, 3),
        (QuotaKey.CONSUMER_BYTE_RATE, APART, 4),
    ]


def test_partitions_share_the_limit_of_a_topic() -> None:
    of = quota((TOGETHER, LIMIT))
    assert delay_ms(of, {0: BURST}) == 0
    assert delay_ms(of, {1: LIMIT}) == 1000


def test_each_partition_has_a_limit_of_partitions_for_itself() -> None:
    of = quota((APART, LIMIT))
    assert delay_ms(of, {0: BURST, 1: BURST}) == 0
    assert delay_ms(of, {1: LIMIT}) == 1000
    assert delay_ms(of, {0: LIMIT // 2, 2: LIMIT}) == 500


def test_of_both_limits_each_tells_its_delay() -> None:
    of = quota((TOGETHER, LIMIT), (APART, LIMIT // 2))
    delays = [delay for delay, _ in charged(of.limited["t"], {0: BURST + LIMIT})]
    assert delays == [1000, 12_000]


def test_what_others_owe_makes_nobody_wait_for_longer_than_a_minute() -> None:
    of = quota((TOGETHER, LIMIT))
    assert delay_ms(of, {0: BURST + 1000 * LIMIT}) == 1_000_000
    assert delay_ms(of, {0: LIMIT}) == OWED_MS_MAX + 1000
    assert delay_ms(of, {0: LIMIT}, now_ms=OWED_MS_MAX + 2000) == 0


def test_a_topic_without_a_limit_is_not_known() -> None:
    of = quota()
    assert of.limited == {}
    of.limit("t", ID, {TOGETHER: LIMIT})
    assert of.limited["t"] is of.limited[ID]
    of.limit("t", ID, {})
    assert of.limited == {}


def test_another_limit_holds_from_the_next_request_on_and_what_was_used_stays() -> None:
    of = quota((TOGETHER, LIMIT))
    assert delay_ms(of, {0: BURST}) == 0
    of.limit("t", ID, {TOGETHER: LIMIT // 2})
    assert delay_ms(of, {0: LIMIT}) == 2000
    of.limit("t", ID, {TOGETHER: LIMIT * 2})
    assert delay_ms(of, {0: LIMIT}) == 1000


def test_a_topic_of_the_same_name_begins_again() -> None:
    of = quota((TOGETHER, LIMIT))
    delay_ms(of, {0: BURST})
    of.limit("t", OTHER_ID, {TOGETHER: LIMIT})
    assert delay_ms(of, {0: BURST}) == 0
    assert set(of.limited) == {"t", OTHER_ID}


def test_the_busiest_partition_is_the_usage_and_held_time_is_of_any_connection() -> None:
    of = quota((APART, LIMIT))
    delay_ms(of, {0: BURST // 2, 1: 1})
    ((_, holding),) = charged(of.limited["t"], {0: BURST})
    holding.begin(0)
    (line,) = usages(of, 3000)
    assert (line.entity, line.limit, line.usage, line.shares) == (APART, LIMIT, BURST * 1.5 / 10, 2)
    assert (line.held_ms, line.held_connections) == (3000, 1)
    holding.end(5000)
    assert usages(of, 9000)[0].held_ms == 5000


def test_what_is_shown_is_bounded_and_those_that_held_somebody_come_first() -> None:
    of = TopicQuota(WINDOW)
    for number in range(ENTITIES_MAX + 1):
        of.limit(f"t{number}", number.to_bytes(16), {TopicEntity(f"t{number}"): LIMIT})
    last = of.limited[f"t{ENTITIES_MAX}"]
    ((_, holding),) = charged(last, {0: BURST * 2})
    holding.begin(0)
    shown = usages(of, 1000)
    assert len(shown) == ENTITIES_MAX
    assert shown[0].entity == TopicEntity(last.name)


def test_limits_follow_the_configs_of_topics() -> None:
    followed = Followed()
    followed.replay(*made(producers="10", consumers="20"))
    assert followed.produced == {'topic "t"': 10}
    followed.replay(ConfigRecord(TOPIC, "t", OF_PRODUCERS, "30"), ConfigRecord(TOPIC, "t", "retention.ms", "1"))
    assert followed.produced == {'topic "t"': 30}
    followed.replay(ConfigRecord(TOPIC, "t", OF_PRODUCERS, None))
    assert followed.produced == {}
    assert [int(line.limit) for line in usages(followed.quotas.fetched)] == [20]
    followed.replay(RemoveTopicRecord(ID))
    assert not followed.quotas.fetched.limited


def test_a_topic_that_is_deleted_and_made_by_one_batch_begins_again() -> None:
    followed = Followed()
    followed.replay(*made(producers=str(LIMIT)))
    assert delay_ms(followed.quotas.produced, {0: BURST + LIMIT}) == 1000
    followed.replay(RemoveTopicRecord(ID), *made(OTHER_ID, producers=str(LIMIT)))
    assert delay_ms(followed.quotas.produced, {0: BURST}) == 0
    followed.replay(ConfigRecord(TOPIC, "t", OF_PRODUCERS, "7"), RemoveTopicRecord(OTHER_ID))
    assert not followed.quotas.produced.limited


def test_a_broker_that_starts_has_the_limits_that_are_set() -> None:
    followed = Followed()
    for record in (*made(producers="10"), ConfigRecord(4, "", "log.retention.ms", "1")):
        followed.metadata.replay(record)
    followed.terms.begin()
    assert followed.produced == {'topic "t"': 10}


def test_what_has_come_in_at_a_former_limit_is_not_owed_at_the_next() -> None:
    followed = Followed()
    followed.replay(*made(producers=str(1000 * LIMIT)))
    assert delay_ms(followed.quotas.produced, {0: 1000 * (BURST + 60 * LIMIT)}) == 60_000
    followed.clock.time_ms = 60_000
    followed.replay(ConfigRecord(TOPIC, "t", OF_PRODUCERS, str(LIMIT)))
    assert delay_ms(followed.quotas.produced, {0: LIMIT}, 60_000) == 1000


def test_no_turn_grows_with_the_number_of_limited_topics() -> None:
    of = TopicQuota(WINDOW)
    for number in range(10 * COST_PER_YIELD):
        of.limit(f"t{number}", number.to_bytes(16), {TopicEntity(f"t{number}"): LIMIT})
    assert of.limits_total == 10 * COST_PER_YIELD
    steps = of.usages(0)
    assert sum(1 for _ in steps) >= 2 * 10
