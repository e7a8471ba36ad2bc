"""The node pools of a `KafkaCluster`: how many nodes, what they are, where they stand and keep their logs."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from kavka_operator.api.container_resources import RequestsAndLimits
from kavka_operator.api.model import ListOf, Model, Rule, Unique
from kavka_operator.api.pods import NodePod
from kavka_operator.api.quantity import Quantity
from kavka_operator.api.resource import Name

NODE_IDS_PER_POOL = 100
POOLS_MAX = 16
RACKS_MAX = 32
VOLUMES_MAX = 16
RACK_PATTERN = r"^[a-zA-Z0-9]([a-zA-Z0-9._-]*[a-zA-Z0-9])?$"  # as the value of a label

Role = Literal["broker", "controller"]

FIXED_LIST: dict[str, Any] = {"x-kubernetes-list-type": "atomic"}


class Volume(Model):
    """One log directory of a node."""

    name: Name = Field(description="The name of the volume; also of its directory on the local platform.")
    size: Quantity | None = Field(default=None, description="How much to ask for. Kubernetes only.")
    storage_class_name: str | None = Field(
        default=None, max_length=253, description="The StorageClass to ask. Kubernetes only."
    )


class Storage(Model):
    """The volumes in which nodes keep their logs."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="(self.type == 'Ephemeral') == has(self.sizeLimit)",
            message="type: Ephemeral and sizeLimit belong together; write both, such as sizeLimit: 10Gi, or neither",
            holds=lambda storage: storage.is_ephemeral == (storage.size_limit is not None),
            path="sizeLimit",
        ),
        Rule(
            cel="self.type != 'Ephemeral' || size(self.volumes) == 1 && self.volumes.all(volume,"
            " !has(volume.size) && !has(volume.storageClassName))",
            message="type: Ephemeral has one volume, without size and storageClassName; write sizeLimit alone",
            holds=lambda storage: (
                not storage.is_ephemeral
                or [(found.size, found.storage_class_name) for found in storage.volumes] == [(None, None)]
            ),
            path="volumes",
        ),
    )

    type: Literal["Persistent", "Ephemeral"] = Field(
        default="Persistent",
        description="Ephemeral: the logs of a node are gone with its pod, and the node copies them from others. For"
        " pools of brokers alone; it never changes. Kubernetes only.",
    )
    size_limit: Quantity | None = Field(
        default=None,
        description="How much a node of type Ephemeral may keep on the disk of its machine; Kubernetes evicts a pod"
        " that has more. It never changes.",
    )
    volumes: Annotated[ListOf[Volume], Field(min_length=1, max_length=VOLUMES_MAX), Unique("name")] = Field(
        default=(Volume(name="data"),),
        description="The log directories of each node, one a volume.",
    )

    @property
    def is_ephemeral(self) -> bool:
        """Whether the volumes end with the pod."""
        return self.type == "Ephemeral"


class NodePool(Model):
    """Nodes that are alike."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="!(has(self.racks) && size(self.racks) > 0 && has(self.topologyKey))",
            message="racks and topologyKey say the same thing twice; keep one of them",
            holds=lambda pool: not (pool.racks and pool.topology_key),
            path="topologyKey",
        ),
        Rule(
            cel="!has(self.topologyKey) || !has(self.pod) || !has(self.pod.nodeSelector)"
            " || !(self.topologyKey in self.pod.nodeSelector)",
            message="pod.nodeSelector names the topologyKey, whose value the operator chooses; keep one of them",
            holds=lambda pool: pool.topology_key is None or pool.topology_key not in pool.pod.node_selector,
            path="topologyKey",
        ),
        Rule(
            cel="self.storage.type != 'Ephemeral' || !('controller' in self.roles)",
            message="storage.type: Ephemeral would lose what a controller has voted and knows; write roles: [broker],"
            " and a pool of controllers with volumes beside it",
            holds=lambda pool: not (pool.storage.is_ephemeral and "controller" in pool.roles),
            path="storage",
        ),
    )

    name: Name = Field(description="The name of the pool; its nodes are named after it.")
    replicas: int = Field(
        default=1, ge=0, le=NODE_IDS_PER_POOL, description="How many nodes. Those that go have to be empty of replicas."
    )
    roles: Annotated[ListOf[Role], Field(min_length=1, max_length=2), Unique()] = Field(
        default=("broker", "controller"),
        description="What the nodes are: brokers, controllers, or both.",
    )
    racks: ListOf[Annotated[str, Field(min_length=1, max_length=63, pattern=RACK_PATTERN)]] = Field(
        default=(),
        max_length=RACKS_MAX,
        description="Racks, given to the nodes in turn. Excludes topologyKey.",
        json_schema_extra=FIXED_LIST,
    )
    topology_key: str | None = Field(
        default=None,
        max_length=317,
        description="The label of machines whose value is the rack: topology.kubernetes.io/zone. Each node is given the"
        " value that the fewest others have, and runs only on machines with it. Kubernetes only.",
    )
    storage: Storage = Field(default_factory=Storage, description="Where the nodes keep their logs.")
    resources: RequestsAndLimits = Field(
        default_factory=dict, description="Requests and limits of the broker's container. Kubernetes only."
    )
    pod: NodePod = Field(default_factory=NodePod, description="What the pods have beside that. Kubernetes only.")
