"""What a seed draws of its cluster before anything runs."""

from dataclasses import replace
from random import Random
from typing import Final

from tests.sim.changes import KINDS, LATER, OF_VOTERS
from tests.sim.cluster import Shape
from tests.sim.handing_over import drawn as drawn_handovers
from tests.sim.playbook import drawn
from tests.sim.playbook import settings as settings_of

RACK_AWARE: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
CHECKPOINTS_MS: Final = ("1000", "5000", "60000")
UNHURRIED: Final = str(2**63 - 1)

#: How much longer than the most hectic clients they rest, and how much longer the faults last then: it costs the same.
PACES: Final = {1: 1.0, 3: 1.5, 10: 2.5}

ONE_BATCH: Final = {"replica.fetch.max.bytes": "1", "replica.fetch.response.max.bytes": "1"}


def shape_of(seed: int, nodes: int | None = None) -> Shape:
    """The cluster that this seed draws."""
    random = Random(f"shape {seed}")
    count = random.choices((1, 3, 4, 5), (1, 8, 2, 1))[0]
    if nodes is not None:
        count = nodes
    min_isr = min(2, count)
    is_synced = count == 1 or random.random() < 0.3
    directories = Random(f"directories {seed}").choice((1, 1, 2))
    has_voters_in_log = Random(f"voters {seed}").random() < 0.4
    later = tuple(kind for kind in LATER if Random(f"changes {kind} {seed}").random() < 0.25)
    changes = tuple(kind for kind in KINDS if random.random() < 0.3)
    workloads = drawn(seed)
    pace = Random(f"pace {seed}").choice(tuple(PACES))
    return Shape(
        nodes=count,
        voters=random.choice((3, 3, 5)),
        partitions=random.randint(1, 3),
        producers=random.randint(1, 2),
        readers=random.randint(1, 2),
        min_isr=min_isr,
        seconds=random.choice((6.0, 12.0, 20.0)) * PACES[pace],
        pace=pace,
        settings={
            "broker.session.timeout.ms": random.choice(("2000", "5000", "9000")),
            "broker.heartbeat.interval.ms": random.choice(("200", "1000")),
            "replica.lag.time.max.ms": random.choice(("1000", "4000", "30000")),
            "controller.quorum.fetch.timeout.ms": random.choice(("800", "2000")),
            "controller.quorum.election.timeout.ms": random.choice(("400", "1000")),
            "replica.selector.class": random.choice(("", RACK_AWARE)),
            "metadata.log.max.record.bytes.between.snapshots": random.choice(("2000", "20000", "20971520")),
            "replica.high.watermark.checkpoint.interval.ms": Random(f"checkpoints {seed}").choice(CHECKPOINTS_MS),
            # So slow that most moves outlive their broker, and have to go on in its next life.
            "replica.alter.log.dirs.io.max.bytes.per.second": Random(f"moves {seed}").choice(("3000", UNHURRIED)),
            "alter.log.dirs.replication.quota.window.num": "2",  # a second's worth at once, not ten
            # Some followers get one batch at a time, and are behind for longer.
            **(ONE_BATCH if Random(f"fetches {seed}").random() < 0.3 else {}),
            # Logs are small here: by default hardly one would have an entry in its index.
            "log.index.interval.bytes": Random(f"index {seed}").choice(("1", "300", "4096")),
            **settings_of(seed, workloads),
        },
        topic_configs={
            "message_timestamp_after_max_ms": str(2**62),
            "internal_segment_bytes": random.choice(("2000", "16000", "1048576")),
            **({"flush_messages": "1"} if is_synced else {}),
        },
        changes=(*changes, *later, *(OF_VOTERS if has_voters_in_log else ())),
        workloads=workloads,
        is_besieged=Random(f"besieged {seed}").random() < 0.35,
        has_voters_in_log=has_voters_in_log,
        directories=directories,
        has_journal_by_directory=Random(f"journals {seed}").random() < 0.5,
        handovers_a_turn=drawn_handovers(seed),
        has_foreign=Random(f"foreign {seed}").random() < 0.4,
        is_strained=Random(f"strain {seed}").random() < 0.25,
    )


def alone(seed: int, nodes: int | None, workloads: tuple[str, ...]) -> Shape:
    """The cluster that this seed draws, with these workloads instead of its own."""
    shape = shape_of(seed, nodes)
    return replace(shape, workloads=workloads, settings={**shape.settings, **settings_of(seed, workloads)})


def plain(shape: Shape) -> Shape:
    """The shape without what a test of one workload leaves to other seeds: changes, a siege, a second log directory,
    voters that change and foreign files.
    """
    return replace(shape, changes=(), is_besieged=False, directories=1, has_voters_in_log=False, has_foreign=False)
