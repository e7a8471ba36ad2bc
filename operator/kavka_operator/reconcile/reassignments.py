"""How replicas of topics are moved: throttled, and so that nothing of the throttle is left behind.

As Kafka's own tools do it: the topic lists the replicas that are throttled, the brokers concerned have a rate, then the
reassignment begins; list and rates go when it is over. A person's rate of a broker stays and counts instead of ours.

What has to go at the end is known by `status.move` alone, which is written before the first of these steps: in the
look that decides on a move nothing of it is done (`may_begin`). So the operator may die after any step, and the next
one goes on from what it sees. A broker keeps its rate as long as another topic is on the move there.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from kavka_operator.api.quantity import spell
from kavka_operator.api.topic import THROTTLE_BYTES_PER_SECOND, Move, Topic
from kavka_operator.domain.name_lists import counted, some
from kavka_operator.domain.observed import SeenCluster, SeenTopic
from kavka_operator.domain.plan import KafkaAction, KafkaPlan, LimitBrokers, LimitReplicas, MoveReplicas, reconciling

LISTS = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
STEPS = (LimitBrokers, LimitReplicas, MoveReplicas)


def throttled(topics: Iterable[tuple[Topic, KafkaPlan]], seen: SeenCluster) -> list[KafkaPlan]:
    """The plans with what has to be throttled before replicas are moved, and let go after."""
    pairs = list(topics)
    going = [topic for topic, plan in pairs if _is_going(topic, plan, seen)]
    rate = min(map(throttle_of, going), default=THROTTLE_BYTES_PER_SECOND)
    noted = {topic.topic_name: set(topic.status.move.throttled_brokers) for topic in going if topic.status.move}
    is_going = {id(topic) for topic in going}
    return [
        _begun(topic, plan, seen, rate, noted)
        if id(topic) in is_going
        else _ended(topic, plan, seen, set().union(*noted.values()))
        for topic, plan in pairs
    ]


def needs_rates(topic: Topic, plan: KafkaPlan) -> bool:
    """Whether the plan depends on the rates of brokers, which cost a request to each."""
    return topic.status.move is not None or _move_in(plan) is not None


def may_begin(topic: Topic, plan: KafkaPlan) -> bool:
    """Whether what `plan` throttles and moves stands in the status already."""
    limited = {broker for action in plan.actions if isinstance(action, LimitBrokers) for broker in action.brokers}
    return topic.status.move is not None and limited <= set(topic.status.move.throttled_brokers)


def noted(topic: Topic, plan: KafkaPlan, seen: SeenCluster, now: datetime) -> Move | None:
    """The move for the status: None where nothing is to be moved, is on its way, or has to be let go."""
    before, there = topic.status.move, seen.topics.get(topic.topic_name)
    if (action := _move_in(plan)) is not None:
        return _decided(topic, plan, len(action.replicas), now)
    if before is None:
        return None
    if there is not None and there.moving:
        done = max(0, before.partitions - len(there.moving))
        return before.replaced({"partitions_done": done, "replicas_left": there.replicas_to_come})
    limits = [step for step in plan.actions if isinstance(step, LimitBrokers)]
    brokers = {*before.throttled_brokers} - seen.rates.keys() | {b for step in limits for b in step.brokers}
    if not brokers and not any(isinstance(step, LimitReplicas) for step in plan.actions):
        return None
    over = {"partitions_done": before.partitions, "replicas_left": 0, "throttled_brokers": tuple(sorted(brokers))}
    return before.replaced(over)


def _decided(topic: Topic, plan: KafkaPlan, partitions: int, now: datetime) -> Move:
    """A move that is about to begin, with the brokers that will be throttled for it."""
    before, limits = topic.status.move, [step for step in plan.actions if isinstance(step, LimitBrokers)]
    brokers = {*(before.throttled_brokers if before else ()), *(b for step in limits for b in step.brokers)}
    return Move(
        since=before.since if before else now,
        partitions=partitions,
        throttle=next((step.rate for step in limits if step.rate is not None), throttle_of(topic)),
        throttled_brokers=tuple(sorted(brokers)),
    )


def throttle_of(topic: Topic) -> int:
    """The bytes a second that the resource asks for."""
    return topic.spec.placement.throttle or THROTTLE_BYTES_PER_SECOND


def words_of(move: Move, there: SeenTopic) -> str:
    """Words for the progress of a move."""
    names = some([f"{there.name}-{index}" for index in there.moving])
    done = max(0, move.partitions - len(there.moving))
    return (
        f"{done} of {counted(move.partitions, 'partition')} moved since {move.since:%Y-%m-%dT%H:%M:%SZ};"
        f" {counted(there.replicas_to_come, 'replica')} of {names} still to be copied, at {spell(move.throttle)}"
        " a second and broker"
    )


def _move_in(plan: KafkaPlan) -> MoveReplicas | None:
    return next((action for action in plan.actions if isinstance(action, MoveReplicas)), None)


def _is_going(topic: Topic, plan: KafkaPlan, seen: SeenCluster) -> bool:
    there = seen.topics.get(topic.topic_name)
    is_ours = topic.status.move is not None and topic.metadata.deletion_timestamp is None
    return _move_in(plan) is not None or (is_ours and there is not None and bool(there.moving))


def _begun(topic: Topic, plan: KafkaPlan, seen: SeenCluster, rate: int, noted: Mapping[str, set[int]]) -> KafkaPlan:
    """The plan of a topic on the move: with rates and lists, as far as they are not there yet."""
    there, action = seen.topics[topic.topic_name], _move_in(plan)
    ours = set().union(*noted.values())
    concerned = set(topic.status.move.throttled_brokers) if topic.status.move else set()
    if action is not None:
        concerned |= {b for index, new in action.replicas.items() for b in (*new, *there.assignment[index])}
    free = {broker for broker in concerned & seen.brokers.keys() if broker in ours or not seen.rates.get(broker)}
    wanted = dict.fromkeys(RATES, str(rate))
    limited = tuple(sorted(broker for broker in free if seen.rates.get(broker, {}) != wanted))
    steps: list[KafkaAction] = [LimitBrokers(limited, rate)] if limited else []
    if action is not None:
        lists = _lists(action, there)
        if any(there.overrides.get(key) != value for key, value in lists.items()) and not _are_own(topic):
            steps.append(LimitReplicas(topic.topic_name, lists))
        others = tuple(other for other in plan.actions if other is not action)
        return replace(plan, actions=(*others, *steps, action))
    move = topic.status.move
    assert move is not None, "a topic without a plan to move goes by its status"
    return replace(plan, actions=(*plan.actions, *steps), words=reconciling("Moving", words_of(move, there)))


def _ended(topic: Topic, plan: KafkaPlan, seen: SeenCluster, busy: set[int]) -> KafkaPlan:
    """The plan of a topic that is not on the move: what is left of its last move goes."""
    if topic.status.move is None:
        return plan
    there, steps = seen.topics.get(topic.topic_name), list[KafkaAction]()
    if there is not None and not _are_own(topic) and any(key in there.overrides for key in LISTS):
        steps.append(LimitReplicas(topic.topic_name, {}))
    ours = [broker for broker in topic.status.move.throttled_brokers if broker not in busy and seen.rates.get(broker)]
    if ours:
        steps.append(LimitBrokers(tuple(ours), None))
    return replace(plan, actions=(*steps, *plan.actions))


def _are_own(topic: Topic) -> bool:
    """Whether the resource itself says which replicas are throttled."""
    return any(key in topic.spec.config for key in LISTS)


def _lists(action: MoveReplicas, there: SeenTopic) -> dict[str, str]:
    """The replicas to throttle: those that are read from, and those that come."""
    pairs = [(index, there.assignment[index], new) for index, new in sorted(action.replicas.items())]
    leaders = [f"{index}:{broker}" for index, old, _ in pairs for broker in sorted(old)]
    followers = [f"{index}:{broker}" for index, old, new in pairs for broker in sorted(set(new) - set(old))]
    found = zip(LISTS, (",".join(leaders), ",".join(followers)), strict=True)
    return {key: value for key, value in found if value}
