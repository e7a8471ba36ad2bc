"""The topics, quotas and users of a cluster where they are kept: held, given their statuses, released."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.api.kinds import AnyResource, Key, Managed, cluster_key, key_of
from kavka_operator.domain.plan import Word, unknown
from kavka_operator.loop.converge import Outcome
from kavka_operator.loop.deletion import doubts, is_overdue, outlives
from kavka_operator.loop.interfaces import Resources
from kavka_operator.loop.status_writer import Said, StatusWriter
from kavka_operator.reconcile.status import with_words


@dataclass(slots=True)
class ManagedResources:
    """Holds, describes and releases the resources that the loop of one cluster carries out in Kafka."""

    resources: Resources
    writer: StatusWriter
    tell: Callable[[str], None]
    now: Callable[[], datetime]

    def held(self, resources: Sequence[AnyResource]) -> list[Managed]:
        """The topics, quotas and users that may be carried out: those whose deletion does something are held first."""
        managed = [resource for resource in resources if isinstance(resource, Managed)]
        living = [resource for resource in managed if resource.metadata.deletion_timestamp is None]
        faults = self.resources.hold([(resource, outlives(resource)) for resource in living])
        for resource in living:
            if (error := faults.get(key_of(resource))) is not None:
                self.writer.say_once(f"{resource.identity} cannot be held and is left alone: {error}")
        return [resource for resource in managed if key_of(resource) not in faults]

    def leave_alone(self, resources: Sequence[AnyResource]) -> None:
        """Say of topics, quotas and users that their cluster is not there; those that are deleted may go."""
        said: list[Said] = []
        for resource in resources:
            if resource.metadata.deletion_timestamp is not None:
                self.resources.remove(key_of(resource))
            elif not isinstance(resource, KafkaCluster):
                _, namespace, name = cluster_key(resource)
                words = f'no KafkaCluster "{name}" is known in namespace "{namespace}"'
                said.append((resource, with_words(resource, unknown("NoSuchCluster", words), self.now()), ()))
        self.writer.set_statuses(said)

    def doubt(self, cluster: KafkaCluster, resources: Sequence[AnyResource], words: tuple[Word, ...]) -> None:
        """Say with these words that nothing is known of topics, quotas and users; those overdue for deletion may go."""
        known = {"is_external": cluster.spec.external is not None, "knows_users": cluster.spec.asks_who}
        said: list[Said] = []
        for resource in resources:
            if not isinstance(resource, Managed):
                continue
            if is_overdue(resource, self.now()) and self.resources.remove(key_of(resource)):
                self.tell(f"{resource.identity} is deleted; what it has set in Kafka stays, as {words[0].message}")
                continue
            said.append((resource, with_words(resource, doubts(resource, words), self.now(), **known), ()))
        self.writer.set_statuses(said)

    def note(self, outcome: Outcome) -> None:
        """Write the statuses that a look came to.

        A status is what the operator remembers of its own deeds, such as passwords that it has set: each is written in
        the turn that finds it, however many they are.
        """
        done, said = outcome.done_by_key(), list[Said]()
        for resource in self.resources.read()[0]:
            key = key_of(resource)
            if (status := outcome.statuses.get(key)) is not None:
                said.append((resource, status, done.get(key, ())))
            elif key in done:  # it was deleted, and what it had made is gone
                self.writer.announce(resource, resource.status, done[key])
        self.writer.set_statuses(said)

    def release(self, keys: Sequence[Key]) -> bool:
        """Let resources go whose deletion is done in Kafka; whether all could be. What keeps one is told."""
        kept = False
        for key, found in self.resources.remove_all(keys).items():
            if isinstance(found, Exception):
                self.writer.say_once(f'{key[0]} "{key[2]}" is deleted and cannot be let go: {found}')
                kept = True
            elif found:
                self.tell(f'{key[0]} "{key[2]}" is no longer declared')
        return not kept
