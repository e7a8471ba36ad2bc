"""What clients of a cluster tell of their records, and the topics that it is compared with."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from kavka_audit.completeness.reports import TOPIC
from kavka_audit.lake.logs import UncountedError
from kavka_audit_run.cluster_inventory import Accountant, Accounted
from kavka_cli.target import Target
from kavka_operator.kafka.admin import AdminError
from kavka_operator.kafka.audit_topic import AuditTopic


class CountedLog:
    """A topic whose records are counted."""

    def __init__(self, kept: AuditTopic) -> None:
        self.topic, self.topic_id, self._kept = kept.topic, kept.topic_id, kept

    def ranges(self) -> list[tuple[int, int, int]]:
        """Return each partition with its first offset and the one after its last. Raises UncountedError."""
        found = self._kept.ranges()
        if not found:
            raise UncountedError(f"the records of {self.topic}: its partitions are not told")
        return found

    def begin(self, partition: int) -> int:
        """Return the first offset that reading has found to be there."""
        return self._kept.begin(partition)

    def read(self, partition: int, first: int, until: int) -> Iterator[Any]:
        """Give the records from `first` to before `until`. Raises UncountedError."""
        with _uncounted(self.topic):
            yield from self._kept.read(partition, first, until)


class KeptBooks:
    """The topic with the counts and those that it names. A topic that cannot be counted is told as `untold`."""

    def __init__(self, target: Target, accountant: Accountant, accounted: Accounted) -> None:
        self._target, self._accountant, self._accounted = target, accountant, accounted
        self._opened = ExitStack()

    def close(self) -> None:
        """Close the connections."""
        self._opened.close()

    def reports(self) -> AuditTopic | None:
        """Return the topic with what clients tell; None where there is none. Raises AdminError."""
        return self._topic(TOPIC) if TOPIC in self._accounted.topic_ids else None

    def log(self, topic: str) -> CountedLog | None:
        """Return a topic to be counted; None, and words for it, where it cannot be."""
        try:
            with _uncounted(topic):
                if topic not in self._accounted.topic_ids:
                    raise UncountedError(f"the records of {topic}: the topic is not there")
                if self._accountant.is_compacted(topic):
                    raise UncountedError(f"the records of {topic}: it is compacted, so that records go one by one")
                return CountedLog(self._topic(topic))
        except UncountedError as problem:
            self.uncounted(str(problem))
            return None

    def uncounted(self, words: str) -> None:
        """Hear why a topic was not counted to its end."""
        self._accounted.untold.append(words)

    def _topic(self, topic: str) -> AuditTopic:
        # Opened one after the other: that of the topic before is not needed any more.
        self._opened.close()
        found = AuditTopic(self._target.bootstrap, self._target.security, self._accounted.topic_ids[topic], topic)
        self._opened.callback(found.close)
        return found


@contextmanager
def _uncounted(topic: str) -> Iterator[None]:
    try:
        yield
    except AdminError as error:
        raise UncountedError(f"the records of {topic}: {error}") from error
