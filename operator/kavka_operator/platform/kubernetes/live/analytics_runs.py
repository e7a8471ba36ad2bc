"""Runs that ask a cluster's audit trail, as objects of the API server: kept as they are wanted, and seen.

Nothing of it holds up the nodes: what is refused stands in the status of the analytics, in the API server's words. The
CronJob is made first, as all that Spark needs belongs to it; one of another engine is deleted, with all of that, and
made again at the next look. The claim is made once, and grows.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from kavka_operator.api.audit import Analytics, AnalyticsStatus, AuditVolume
from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.platform.kubernetes.live.api import CONFLICT, GONE, Api, ApiError, Bridge
from kavka_operator.platform.kubernetes.live.resource_cache import ClusterKey
from kavka_operator.platform.kubernetes.objects import analytics as wanted
from kavka_operator.platform.kubernetes.objects.manifests import covers, with_uid
from kavka_operator.platform.kubernetes.objects.names import ENGINE, Document, audit_name, label, name_of, uid_of
from kavka_operator.platform.kubernetes.observe.node_objects import size_of

KNOWN_SECONDS_MAX: Final = 10.0
"""How long a list of the objects is believed."""

CLAIM = "PersistentVolumeClaim"
OF_SPARK: Final = ("ServiceAccount", "Role", "RoleBinding", "NetworkPolicy")
NO_IMAGE: Final = (
    "spec.audit.analytics.image: this operator has no image of its own for the analytics; name one here, or give the"
    " operator one"
)


class RefusedError(Exception):
    """The analytics cannot be run as they are wanted; the message says why and what to do."""


@dataclass(slots=True)
class AnalyticsOf:
    """The analytics of one cluster. `image` is that of runs whose resource names none."""

    key: ClusterKey
    api: Api
    bridge: Bridge
    image: str | None
    clock: Callable[[], float]
    _known: dict[str, Document] = field(default_factory=dict)  # by kind: there is one of each
    _jobs: list[Document] = field(default_factory=list)
    _listed_at: float | None = None
    _pods: dict[str, Sequence[Document]] = field(default_factory=dict)  # of the newest run that has ended, by its uid
    _is_clean: bool = False  # whether there was nothing when nothing was wanted

    def keep(self, cluster: KafkaCluster, bootstrap: str) -> AnalyticsStatus | None:
        """Bring the objects to what is wanted; how the runs stand. Raises ApiError where no API server answers.

        `bootstrap` are addresses of the cluster's brokers. Nothing is made before the cluster has answered once: a run
        in its first seconds could only fail.
        """
        asked, before = cluster.spec.analytics, cluster.status.analytics
        try:
            if asked is None:
                self._leave(cluster)
                return None
            self._is_clean = False
            self._list(("CronJob", *(OF_SPARK if asked.engine == "Spark" else ()), CLAIM))
            if cluster.status.cluster_id is None and "CronJob" not in self._known:
                return None
            self._provide(cluster, asked, bootstrap)
        except RefusedError as error:
            return wanted.refused(before, str(error))
        except ApiError as error:
            self._listed_at = None
            if not 400 <= error.status < 500:
                raise
            return wanted.refused(before, f"spec.audit.analytics: {error}")
        end, pods = self._last_pods()
        words = wanted.with_field(asked, wanted.words_of(pods) if end == "Failed" else "")
        summary = wanted.summary_of(pods) if end == "Complete" else None
        return wanted.status_of(before, self._known.get("CronJob", {}), self._jobs, words, summary)

    def _provide(self, cluster: KafkaCluster, asked: Analytics, bootstrap: str) -> None:
        """Put right what there is. Raises ApiError and RefusedError."""
        image = asked.image or self.image
        if image is None:
            raise RefusedError(NO_IMAGE)
        cron = self._known.get("CronJob")
        if cron is not None and label(cron, ENGINE) != asked.engine:
            self._delete(cron)  # with what Spark needs; the next look makes another
            return
        if asked.storage.volume is not None:
            self._claim(cluster, asked.storage.volume)
        cron = self._put(cluster, wanted.cron_job(cluster, asked, image, bootstrap))
        for manifest in wanted.of_spark(cluster, cron) if asked.engine == "Spark" else ():
            self._put(cluster, manifest)

    def _leave(self, cluster: KafkaCluster) -> None:
        """Delete the CronJob of analytics that are not wanted, and what goes with it. Raises ApiError."""
        if self._is_clean:
            return
        self._listed_at = None
        self._list(("CronJob",))
        cron = self._known.get("CronJob")
        self._is_clean = cron is None or not wanted.is_ours(cron, cluster)
        if cron is not None and not self._is_clean:
            self._delete(cron)

    def _list(self, kinds: tuple[str, ...]) -> None:
        """List the objects, where that was done a while ago. Raises ApiError.

        What Spark alone needs is not asked for where DuckDB runs: an operator need not have the rights.
        """
        now = self.clock()
        if self._listed_at is not None and now - self._listed_at < KNOWN_SECONDS_MAX:
            return
        namespace, name = self.key
        marks = wanted.selector(name)
        found = [self.bridge.wait(self.api.labelled(kind, namespace, marks)) for kind in kinds]
        here = [document for documents in found for document in documents if name_of(document) == audit_name(name)]
        self._known = {str(document["kind"]): document for document in here}
        self._jobs = self.bridge.wait(self.api.labelled("Job", namespace, marks)) if "CronJob" in self._known else []
        self._listed_at = now

    def _claim(self, cluster: KafkaCluster, volume: AuditVolume) -> None:
        """Make the claim, or let it grow: as large as is asked for, or as another has made it."""
        seen = self._seen(cluster, CLAIM)
        if seen is None or size_of(seen) < volume.size:
            self._known[CLAIM] = self.bridge.wait(self.api.put(with_uid(wanted.claim(cluster, volume), seen)))

    def _put(self, cluster: KafkaCluster, manifest: Document) -> Document:
        """Apply an object, unless it is so already; the object. Raises ApiError and RefusedError."""
        kind = manifest["kind"]
        seen = self._seen(cluster, kind)
        if seen is not None and covers(seen, manifest):
            return seen
        answer = self._known[kind] = self.bridge.wait(self.api.put(with_uid(manifest, seen)))
        return answer

    def _seen(self, cluster: KafkaCluster, kind: str) -> Document | None:
        """The object of a kind that is there. Raises ApiError, and RefusedError where it is another's."""
        name = audit_name(cluster.name)
        seen = self._known.get(kind) or self.bridge.wait(self.api.find(kind, self.key[0], name))
        if seen is not None and not wanted.is_ours(seen, cluster):
            raise RefusedError(
                f'{kind} "{name}" is there and is not of this KafkaCluster; delete it, or give the cluster another name'
            )
        return seen

    def _delete(self, document: Document) -> None:
        """Delete an object as it was read last; one that has gone or changed is looked at again."""
        self._listed_at = None
        try:
            self.bridge.wait(self.api.delete(document))
        except ApiError as error:
            if error.status not in {GONE, CONFLICT}:
                raise

    def _last_pods(self) -> tuple[str, Sequence[Document]]:
        """The end of the newest run, and its pods, which are asked for once. Raises ApiError."""
        run = wanted.newest(self._jobs)
        end = wanted.ended(run)[0] if run is not None else ""
        if run is None or not end:
            return "", ()
        if uid_of(run) not in self._pods:
            marks = {"batch.kubernetes.io/job-name": name_of(run)}
            self._pods = {uid_of(run): self.bridge.wait(self.api.labelled("Pod", self.key[0], marks))}
        return end, self._pods[uid_of(run)]
