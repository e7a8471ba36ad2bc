"""Processor and memory of brokers that run: given to their pods in place, where this Kubernetes does that.

The pod is asked first, so that what it does not take is in no template. What is noted on the pod comes last: an
operator that dies before is followed by one that does all of it again. A pod that was refused other resources is
restarted.
"""

from dataclasses import dataclass, field

from kavka_operator.platform.kubernetes.live.api import CONFLICT, GONE, Api, ApiError, Bridge, Document
from kavka_operator.platform.kubernetes.objects.settings import Layout, fingerprint
from kavka_operator.platform.kubernetes.observe import pod_resources
from kavka_operator.platform.kubernetes.observe.node_objects import shortened
from kavka_operator.platform.kubernetes.observe.node_state import Sight


@dataclass(slots=True)
class Resizing:
    """Resources that were refused, by node: the fingerprint that was asked for, and the API server's words."""

    api: Api
    bridge: Bridge
    _is_known: bool | None = None
    _refused: dict[int, tuple[str, str]] = field(default_factory=dict)

    def kept(self, sight: Sight) -> dict[int, str]:
        """The nodes that might take other resources in place and do not, and why. Raises ApiError."""
        found = {
            number: layout
            for number, layout in sight.layouts.items()
            if number in sight.known.pods and pod_resources.is_in_place(sight.known, layout)
        }
        if found and self._is_known is None:
            self._is_known = self.bridge.wait(self.api.resizes_pods())
        if not self._is_known:
            return dict.fromkeys(found, pod_resources.TOO_OLD)
        refused = {number: self._refused.get(number, ("", "")) for number in found}
        return {number: words for number, (mark, words) in refused.items() if mark == fingerprint(found[number])}

    def give(self, layout: Layout, pod: Document) -> bool:
        """Let the broker in a pod have what is asked for; whether Kubernetes does that. Raises ApiError."""
        try:
            self.bridge.wait(self.api.patch_pod(pod, pod_resources.amounts(layout), "resize"))
        except ApiError as error:
            if error.status in {0, GONE, CONFLICT}:
                raise
            self._refused[layout.node.id] = fingerprint(layout), shortened(str(error))
            return False
        return True

    def note(self, layout: Layout, pod: Document) -> None:
        """Note on a pod what its broker has been given. Raises ApiError."""
        self.bridge.wait(self.api.patch_pod(pod, pod_resources.marks(layout)))
