"""What a node pool asks of its pods beside the broker: the fields of a pod by Kubernetes' own names.

The operator does not know what Kubernetes lets them hold. It asks the API server by a dry run before anything is
started or restarted, and the condition has the API server's own words.
"""

from typing import Annotated, Any, ClassVar

from pydantic import Field

from kavka_operator.api.model import ListOf, Model, Rule

LABELS_MAX = 64
ITEMS_MAX = 32
OWN_PREFIX = "kavka.dev/"
OWN_LABELS = ("app.kubernetes.io/name", "app.kubernetes.io/instance", "app.kubernetes.io/managed-by")
STOP_SECONDS = 120
STOP_SECONDS_MAX = 3600
FREE: dict[str, Any] = {"x-kubernetes-preserve-unknown-fields": True}

Text = Annotated[str, Field(max_length=1024)]
Texts = Annotated[dict[str, Text], Field(max_length=LABELS_MAX)]
Items = Annotated[ListOf[Annotated[dict[str, Any], Field(json_schema_extra=FREE)]], Field(max_length=ITEMS_MAX)]
ATOMIC: dict[str, Any] = {"x-kubernetes-list-type": "atomic"}


def _none_is_ours(names: str) -> str:
    """CEL: whether no key of a map is one that the operator writes."""
    return (
        f"!has(self.{names}) || !self.{names}.exists(key, key.startsWith('{OWN_PREFIX}') || key in {list(OWN_LABELS)})"
    )


def _holds(names: dict[str, str]) -> bool:
    return not any(name.startswith(OWN_PREFIX) or name in OWN_LABELS for name in names)


class Pod(Model):
    """Fields of a pool's pods, beside those that the operator sets."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel=_none_is_ours("labels"),
            message="has a label by which the operator finds its pods; take it out",
            holds=lambda pod: _holds(pod.labels),
            path="labels",
        ),
        Rule(
            cel=_none_is_ours("annotations"),
            message="has an annotation that the operator writes; take it out",
            holds=lambda pod: _holds(pod.annotations),
            path="annotations",
        ),
    )

    labels: Texts = Field(default_factory=dict, description="More labels of the pods.")
    annotations: Texts = Field(default_factory=dict, description="More annotations of the pods.")
    node_selector: Texts = Field(default_factory=dict, description="The labels that a machine must have.")
    tolerations: Items = Field(default=(), description="The taints that the pods bear.", json_schema_extra=ATOMIC)
    affinity: dict[str, Any] = Field(
        default_factory=dict,
        description="Affinity, by Kubernetes' names. Without a podAntiAffinity the nodes of a cluster keep apart where"
        " there are machines enough.",
        json_schema_extra=FREE,
    )
    topology_spread_constraints: Items = Field(
        default=(),
        description="Topology spread constraints. A pod is alone in its StatefulSet.",
        json_schema_extra=ATOMIC,
    )
    priority_class_name: str | None = Field(default=None, max_length=253, description="The PriorityClass of the pods.")
    image_pull_secrets: Items = Field(
        default=(), description="The Secrets with which the image is pulled.", json_schema_extra=ATOMIC
    )

    def spec(self) -> dict[str, Any]:
        """Its fields for the spec of a pod; nothing where nothing was asked for."""
        found = {
            "nodeSelector": self.node_selector,
            "tolerations": list(self.tolerations),
            "affinity": self.affinity,
            "topologySpreadConstraints": list(self.topology_spread_constraints),
            "priorityClassName": self.priority_class_name,
            "imagePullSecrets": list(self.image_pull_secrets),
        }
        return {name: value for name, value in found.items() if value}


class NodePod(Pod):
    """Fields of the pods of nodes: those of any pod, and what a broker needs beside."""

    termination_grace_period_seconds: int = Field(
        default=STOP_SECONDS,
        ge=1,
        le=STOP_SECONDS_MAX,
        description="How long a broker may take for its controlled shutdown before Kubernetes kills it.",
    )
    security_context: dict[str, Any] = Field(
        default_factory=dict,
        description="Fields of the pod's securityContext, by Kubernetes' names, in place of the operator's or beside"
        " them.",
        json_schema_extra=FREE,
    )
    volumes: Items = Field(
        default=(),
        description="More volumes of the pods, by Kubernetes' names; none holds logs.",
        json_schema_extra=ATOMIC,
    )
    volume_mounts: Items = Field(
        default=(), description="Where the broker's container has those volumes.", json_schema_extra=ATOMIC
    )

    def asked(self) -> dict[str, Any]:
        """All that was asked for of its pods by other fields than labels and annotations; nothing where nothing was."""
        stop = self.termination_grace_period_seconds
        more = {
            "terminationGracePeriodSeconds": stop if stop != STOP_SECONDS else None,
            "securityContext": self.security_context,
            "volumes": list(self.volumes),
            "volumeMounts": list(self.volume_mounts),
        }
        return {**self.spec(), **{name: value for name, value in more.items() if value}}
