"""Scripts that a person can read, played on a real cluster of either product.

A line is a verb and its arguments, `->` and what a client was told. Verbs:

    topic NAME 1,2,3 KEY=VALUE ...   create a topic with one partition on these brokers
    produce NODE TOPIC VALUE ... [acks=all]
    fetch NODE TOPIC OFFSET [epoch=N] [committed=N]
    elect TOPIC [unclean]            leader election, preferred unless said otherwise
    reassign TOPIC 3,2 | cancel
    kill | stop | start | pause | resume NODE
    until TOPIC leader=2 isr=2,3 replicas=1,2,3    wait for it; what the metadata says then
    state TOPIC

The expected side was written by Apache Kafka (`--rewrite` with KAVKA_TEST_SERVER=apache-kafka), so a difference is one
between it and Kavka, unless a comment in the script says why Kavka differs.
"""

import time
from collections.abc import Callable
from typing import Final

from tests.chaos.asking import Seen, partitions_of
from tests.chaos.nodes import Cluster, Node
from tests.conformance.differential.asking import Asked

UNTIL_SECONDS_MAX: Final = 150.0
RETRY_SECONDS_MAX: Final = 60.0
NOT_LEADER: Final = "NOT_LEADER_OR_FOLLOWER"
PRODUCE_MS_MAX: Final = 60_000
ARROW: Final = " -> "
COLUMN: Final = 48


class Player:
    """Plays one script on one cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.asked = Asked(lambda node_id: cluster.node(node_id).address)
        self.verbs: dict[str, Callable[..., str]] = {
            "topic": self.topic, "produce": self.produce, "fetch": self.fetch, "elect": self.elect,
            "reassign": self.reassign, "kill": self.kill, "stop": self.stop, "start": self.start,
            "pause": self.pause, "resume": self.resume, "until": self.until, "state": self.state,
        }  # fmt: skip

    def play(self, text: str) -> str:
        """The script with what happened in place of what was expected."""
        return "".join(self._line(line) + "\n" for line in text.splitlines())

    def _line(self, line: str) -> str:
        command = line.partition(ARROW)[0].strip()
        if not command or command.startswith("#"):
            return line.rstrip()
        verb, *words = command.split()
        options = dict(word.split("=", 1) for word in words if "=" in word)
        said = self.verbs[verb](*(word for word in words if "=" not in word), **keywords(options))
        return f"{command:{COLUMN}}{ARROW}{said}".rstrip() if said else command

    # --- clients ------------------------------------------------------------------------------------------------

    def topic(self, name: str, replicas: str, **configs: str) -> str:
        settings = {key.replace("_", "."): value for key, value in configs.items()}
        return self.asked.create(self.awake(), name, {0: numbers(replicas)}, settings)

    def produce(self, node: str, topic: str, *values: str, acks: str = "all", timeout: str = "") -> str:
        count = -1 if acks == "all" else int(acks)
        seen = self._seen(topic)

        def once() -> str:
            return self.asked.produce(int(node), topic, list(values), count, int(timeout or PRODUCE_MS_MAX))

        # A node may have been told that it leads a moment before it does.
        is_leader = seen is not None and seen.leader == int(node)
        return retried(once, lambda said: not (is_leader and said.startswith(NOT_LEADER)))

    def fetch(self, node: str, topic: str, offset: str, epoch: str = "-1", committed: str = "") -> str:
        """`committed` waits for that high watermark: a new leader has to learn it."""
        return retried(
            lambda: self.asked.fetch(int(node), topic, int(offset), int(epoch)),
            lambda said: not committed or f"high_watermark={committed}" in said,
        )

    def elect(self, topic: str, kind: str = "preferred") -> str:
        return self.asked.elect(self.awake(), topic, int(kind == "unclean"))

    def reassign(self, topic: str, replicas: str) -> str:
        return self.asked.reassign(self.awake(), topic, None if replicas == "cancel" else numbers(replicas))

    def awake(self) -> int:
        """A node that runs, and that a client would find."""
        return self._awake()[0].node_id

    # --- nodes --------------------------------------------------------------------------------------------------

    def kill(self, node: str) -> str:
        self.cluster.node(int(node)).kill()
        return ""

    def stop(self, node: str) -> str:
        self.cluster.node(int(node)).stop()
        return ""

    def start(self, node: str) -> str:
        self.cluster.node(int(node)).start()
        return ""

    def pause(self, node: str) -> str:
        self.cluster.node(int(node)).pause()
        return ""

    def resume(self, node: str) -> str:
        self.cluster.node(int(node)).resume()
        return ""

    # --- what there is to see -----------------------------------------------------------------------------------

    def state(self, topic: str) -> str:
        return described(self._seen(topic))

    def until(self, topic: str, **wanted: str) -> str:
        """Wait until every node that runs says so, and acts on it; then what they say."""
        deadline = time.monotonic() + UNTIL_SECONDS_MAX
        while not (all(matches(seen, wanted) for seen in self._seen_by_all(topic)) and self._is_taken_over(topic)):
            if time.monotonic() > deadline:
                return f"never; {self.state(topic)}"
            time.sleep(0.05)
        return self.state(topic)

    def _is_taken_over(self, topic: str) -> bool:
        seen = self._seen(topic)
        if seen is None or seen.leader < 0:
            return seen is not None
        try:
            return all(
                self.asked.has_taken_over(
                    node.node_id, topic, seen.leader_epoch, is_replica=node.node_id in seen.replicas
                )
                for node in self._awake()
            )
        except OSError:
            return False

    def _awake(self) -> list[Node]:
        return [node for node in self.cluster.nodes if node.process is not None and not node.is_paused]

    def _seen(self, topic: str) -> Seen | None:
        return next((seen for seen in self._seen_by_all(topic)), None)

    def _seen_by_all(self, topic: str) -> list[Seen | None]:
        found: list[Seen | None] = []
        for node in self._awake():
            try:
                partitions = partitions_of(node.address, topic)
            except OSError:
                partitions = []
            found.append(partitions[0] if partitions else None)
        return found


def retried(once: Callable[[], str], is_done: Callable[[str], bool]) -> str:
    """What is said in the end."""
    deadline = time.monotonic() + RETRY_SECONDS_MAX
    while not is_done(said := once()) and time.monotonic() < deadline:
        time.sleep(0.1)
    return said


def keywords(options: dict[str, str]) -> dict[str, str]:
    """Config names have dots, Python's arguments have none."""
    return {name.replace(".", "_"): value for name, value in options.items()}


def numbers(text: str) -> list[int]:
    return [int(word) for word in text.split(",") if word != "none"]


def matches(seen: Seen | None, wanted: dict[str, str]) -> bool:
    if seen is None:
        return False
    facts = {"leader": [seen.leader], "isr": sorted(seen.isr), "replicas": list(seen.replicas)}
    return all(
        facts[name] == (sorted(numbers(value)) if name == "isr" else numbers(value)) for name, value in wanted.items()
    )


def described(seen: Seen | None) -> str:
    if seen is None:
        return "unknown"
    replicas, isr = (",".join(map(str, ids)) or "none" for ids in (seen.replicas, sorted(seen.isr)))
    return f"leader={seen.leader} epoch={seen.leader_epoch} replicas={replicas} isr={isr}"
