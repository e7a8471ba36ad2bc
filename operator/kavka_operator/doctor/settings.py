"""Settings that promise something else than they do, for topics and for brokers."""

from collections.abc import Iterator

from kavka_operator.doctor.evidence import Examined, Finding, Severity, listed

NOTE, WARNING, CRITICAL = Severity.NOTE, Severity.WARNING, Severity.CRITICAL
FULL_REPLICAS = 3
IN_SYNC, UNCLEAN = "min.insync.replicas", "unclean.leader.election.enable"


def judged(seen: Examined) -> Iterator[Finding]:
    """The findings about settings."""
    yield from _in_sync(seen)
    yield from _unclean(seen)
    yield from _retention(seen)
    yield from _internal(seen)
    yield from _defaults(seen)


def _own(seen: Examined) -> dict[str, int]:
    """The replication factor of each topic that is not Kafka's own."""
    factors = {topic: min(len(found.replicas) for found in parts) for topic, parts in seen.by_topic().items()}
    return {topic: factor for topic, factor in factors.items() if topic not in seen.internal}


def _in_sync(seen: Examined) -> Iterator[Finding]:
    above, all_of_them, single = [], [], []
    for topic, factor in _own(seen).items():
        minimum = seen.number(topic, IN_SYNC)
        if minimum is None:
            continue
        if minimum > factor:
            above.append(f"{topic} ({minimum} of {factor})")
        elif minimum == factor > 1:
            all_of_them.append(f"{topic} ({minimum} of {factor})")
        elif minimum == 1 and factor >= FULL_REPLICAS:
            single.append(f"{topic} (1 of {factor})")
    if above:
        what = f"{len(above)} topics want more replicas in sync than they have"
        yield Finding(WARNING, "min-isr-above", what, listed(above), f"lower {IN_SYNC}, or add replicas")
    if all_of_them:
        what = f"{len(all_of_them)} topics take no record with acks=all while any one broker restarts"
        yield Finding(WARNING, "min-isr-all", what, listed(all_of_them), f"set {IN_SYNC} to one less than the replicas")
    if single:
        what = f"{len(single)} topics acknowledge with acks=all what a single broker has"
        yield Finding(WARNING, "min-isr-one", what, listed(single), f"set {IN_SYNC}=2")


def _unclean(seen: Examined) -> Iterator[Finding]:
    found = [topic for topic in _own(seen) if seen.settings.get(topic, {}).get(UNCLEAN) == "true"]
    if found:
        what = f"{len(found)} topics may lose acknowledged records at an election"
        yield Finding(WARNING, "unclean", what, f"{UNCLEAN}=true: {listed(found)}", f"set {UNCLEAN}=false")


def _retention(seen: Examined) -> Iterator[Finding]:
    for_ever, longer = [], []
    for topic in _own(seen):
        settings = seen.settings.get(topic, {})
        age, size = seen.number(topic, "retention.ms"), seen.number(topic, "retention.bytes")
        if "delete" not in settings.get("cleanup.policy", "") or age is None or size is None:
            continue
        if age < 0 and size < 0:
            for_ever.append(topic)
        roll, segment = seen.number(topic, "segment.ms"), seen.number(topic, "segment.bytes")
        if roll is not None and 0 <= age < roll and (segment is None or size < 0):
            longer.append(f"{topic} (segment.ms {roll}, retention.ms {age})")
        elif segment is not None and 0 <= size < segment:
            longer.append(f"{topic} (segment.bytes {segment}, retention.bytes {size})")
    if for_ever:
        evidence = f"retention.ms=-1 and retention.bytes=-1: {listed(for_ever)}"
        fix = "set retention.ms, retention.bytes or cleanup.policy=compact"
        yield Finding(NOTE, "kept-forever", f"{len(for_ever)} topics grow until the disk is full", evidence, fix)
    if longer:
        what = f"{len(longer)} topics keep records longer than they say: a segment goes only as a whole"
        yield Finding(NOTE, "kept-longer", what, listed(longer), "make segments smaller than the retention")


def _internal(seen: Examined) -> Iterator[Finding]:
    if len(seen.brokers) < FULL_REPLICAS:
        return
    topics = {topic: parts for topic, parts in seen.by_topic().items() if topic in seen.internal}
    few = [
        f"{topic} ({factor})"
        for topic, parts in topics.items()
        if (factor := min(len(found.replicas) for found in parts)) < FULL_REPLICAS
    ]
    if few:
        what = f"{len(few)} topics of Kafka's own have fewer than {FULL_REPLICAS} replicas: groups or transactions stop"
        fix = "give them three replicas: kafka-reassign-partitions.sh"
        yield Finding(WARNING, "internal-replicas", what, f"replication factor: {listed(few)}", fix)


def _defaults(seen: Examined) -> Iterator[Finding]:
    if len(seen.brokers) < FULL_REPLICAS:
        return
    for key in ("default.replication.factor", "offsets.topic.replication.factor"):
        few = [broker.id for broker in seen.brokers if broker.settings.get(key) == "1"]
        if few:
            what = f"{key} is 1: topics that are made by themselves have one replica"
            evidence = f"brokers {listed(map(str, few))}"
            yield Finding(WARNING, "default-replicas", what, evidence, f"set {key}=3 on each broker")
