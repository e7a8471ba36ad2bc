"""Whatever is wanted and whatever is there: what a plan asks for is enough, and then nothing more is asked for."""

from typing import Any, cast

from hypothesis import given, settings
from hypothesis import strategies as st

from kavka_operator.api.kinds import key_of
from kavka_operator.api.quota import ClientQuota
from kavka_operator.api.topic import Topic
from kavka_operator.loop.converge import converge
from kavka_operator.loop.observation import Observation
from tests.unit.operator.fakes import NOW, FakeKafka, quota, topic

names = st.sampled_from(["a", "b", "c"])
configs = st.dictionaries(st.sampled_from(["retention.ms", "segment.ms", "cleanup.policy"]), st.none()).flatmap(
    lambda keys: st.fixed_dictionaries(
        {key: st.sampled_from(["compact", "delete"] if "policy" in key else [5, 604_800_000, "7"]) for key in keys}
    )
)
specs = st.fixed_dictionaries(
    {"config": configs, "deletionPolicy": st.sampled_from(["Retain", "Delete", "DeleteIfEmpty"])},
    optional={
        "partitions": st.integers(1, 9),
        "replicationFactor": st.integers(1, 3),
        "guards": st.sampled_from([{"retentionCut": "Allow"}, {"compactedGrowth": "Allow"}]),
        "topicName": names,
    },
)
metadata = st.fixed_dictionaries(
    {"creationTimestamp": st.sampled_from(["2026-11-01T00:00:00Z", "2026-11-02T00:00:00Z"])},
    optional={"deletionTimestamp": st.just("2026-11-03T00:00:00Z")},
)
parts = st.sampled_from([{"name": "alice"}, {"name": "default"}, {"name": "a b"}, {"default": True}])
entities = st.one_of(
    st.fixed_dictionaries({"user": parts}),
    st.fixed_dictionaries({"clientId": parts}),
    st.fixed_dictionaries({"user": parts, "clientId": parts}),
)
limits = st.dictionaries(st.sampled_from(["producerByteRate", "consumerByteRate"]), st.integers(1, 10**9), min_size=1)


@st.composite
def resources(draw: st.DrawFn) -> list[Topic | ClientQuota]:
    topics = draw(st.dictionaries(names, st.tuples(specs, metadata), max_size=3))
    quotas = draw(
        st.dictionaries(
            names,
            st.tuples(
                entities,
                limits,
                metadata,
                st.sampled_from(["PerBroker", "Cluster"]),
                st.sampled_from(["Enforce", "Observe"]),
            ),
            max_size=3,
        )
    )
    return [
        *(topic(name, metadata=meta, **cast("dict[str, Any]", spec)) for name, (spec, meta) in topics.items()),
        *(
            quota(name, entity, limit, metadata=meta, scope=scope, mode=mode)
            for name, (entity, limit, meta, scope, mode) in quotas.items()
        ),
    ]


def next_state(wanted: list[Topic | ClientQuota], outcome: Any) -> list[Topic | ClientQuota]:
    """The resources as they are after their statuses were written and the deleted ones are gone."""
    return [
        each.replaced({"status": outcome.statuses.get(key_of(each), each.status)})
        for each in wanted
        if key_of(each) not in outcome.released
    ]


@settings(max_examples=150)
@given(resources(), st.dictionaries(names, st.integers(1, 6)), st.booleans())
def test_the_second_look_writes_nothing(wanted: list[Topic | ClientQuota], there: dict[str, int], full: bool) -> None:
    kafka = FakeKafka(brokers=3)
    for name, partitions in there.items():
        kafka.make(name, partitions)
        kafka.held[name] = 100 if full else 0
    state = next_state(wanted, converge(Observation(wanted, NOW), kafka))
    # A resource that lost a conflict to one that is gone now takes over, once.
    state = next_state(state, converge(Observation(state, NOW), kafka))
    writes = len(kafka.writes)
    outcome = converge(Observation(state, NOW), kafka)
    assert kafka.writes[writes:] == []
    assert [each.replaced({"status": outcome.statuses[key_of(each)]}) for each in state] == state


@settings(max_examples=150)
@given(resources(), st.dictionaries(names, st.integers(1, 6), min_size=1))
def test_topics_and_quotas_without_a_resource_are_never_touched(
    wanted: list[Topic | ClientQuota], there: dict[str, int]
) -> None:
    kafka = FakeKafka(brokers=3)
    for name, partitions in there.items():
        kafka.make(f"foreign-{name}", partitions, config={"retention.ms": "5"})
    before = dict(kafka.topics)
    state = next_state(wanted, converge(Observation(wanted, NOW), kafka))
    converge(Observation(state, NOW), kafka)
    assert {name: each for name, each in kafka.topics.items() if name.startswith("foreign-")} == before
