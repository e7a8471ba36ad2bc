"""Resources of Strimzi as Kavka's: Kafka with its KafkaNodePools, KafkaTopic and KafkaUser. Pure.

What a field says is taken out of the document as it is translated; what is left in the end has no counterpart, and is
told field by field, so that nothing is dropped in silence.
"""

import copy
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from kavka_operator.api import API_VERSION

GROUP: Final = "kafka.strimzi.io/"
CLUSTER_LABEL: Final = "strimzi.io/cluster"
Document = dict[str, Any]

RESOURCE_TYPES: Final = {
    "topic": "Topic",
    "group": "Group",
    "cluster": "Cluster",
    "transactionalId": "TransactionalId",
}
PATTERNS: Final = {"literal": "Literal", "prefix": "Prefixed"}
SERVICES: Final = {"nodeport": "NodePort", "loadbalancer": "LoadBalancer"}
#: Of Strimzi's own components, or of a Kafka with ZooKeeper; Kavka does what they are for by itself, or has no use.
NO_CONFIG: Final = ("inter.broker.protocol.version", "log.message.format.version")
POD_FIELDS: Final = ("affinity", "tolerations", "topologySpreadConstraints", "priorityClassName", "imagePullSecrets",
                     "securityContext", "terminationGracePeriodSeconds")  # fmt: skip


@dataclass(slots=True)
class Imported:
    """The resources, and remarks about what has no counterpart or means something else."""

    resources: list[Document] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


class Spec:
    """A document of which fields are taken until only those without a counterpart are left."""

    def __init__(self, document: Document) -> None:
        self.kind: str = document["kind"]
        metadata = document.get("metadata") or {}
        self.name: str = metadata.get("name", "")
        self.namespace: str | None = metadata.get("namespace")
        self.cluster: str | None = (metadata.get("labels") or {}).get(CLUSTER_LABEL)
        self.rest: Any = copy.deepcopy(document.get("spec") or {})

    @property
    def identity(self) -> str:
        return f'{self.kind} "{self.name}"'

    def take(self, path: str, default: Any = None) -> Any:
        """Return the value at a path of fields, and take it out."""
        *above, last = path.split(".")
        found = self.rest
        for step in above:
            found = found.get(step) if isinstance(found, dict) else None
        return found.pop(last, default) if isinstance(found, dict) else default

    def left(self) -> list[str]:
        """Return the paths of what was not taken."""
        return list(_paths("spec", self.rest))


def _paths(path: str, value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key in value:
            yield from _paths(f"{path}.{key}", value[key])
    elif isinstance(value, list) and any(isinstance(entry, dict) for entry in value):
        for index, entry in enumerate(value):
            yield from _paths(f"{path}[{index}]", entry)
    else:
        yield path


def import_strimzi(documents: Iterable[Document]) -> Imported:
    """Translate documents; those of other groups are told and left out."""
    found, specs = Imported(), list[Spec]()
    for document in documents:
        if str(document.get("apiVersion", "")).startswith(GROUP):
            specs.append(Spec(document))
        else:
            found.remarks.append(f"{document.get('kind', 'a document')} is not Strimzi's: left out")
    _add_clusters(found, specs)
    for spec in specs:
        if (translate := RESOURCES.get(spec.kind)) is not None:
            if spec.cluster is None:
                found.remarks.append(f"{spec.identity} has no label {CLUSTER_LABEL}: left out")
            else:
                _add(found, spec, translate(spec, found))
        elif spec.kind not in ("Kafka", "KafkaNodePool"):
            found.remarks.append(f"{spec.identity}: there is no such kind here: left out")
    return found


def _add_clusters(found: Imported, specs: Iterable[Spec]) -> None:
    pools: dict[str | None, list[Spec]] = {}
    clusters = list[Spec]()
    for spec in specs:
        if spec.kind == "KafkaNodePool":
            pools.setdefault(spec.cluster, []).append(spec)
        elif spec.kind == "Kafka":
            clusters.append(spec)
    for spec in clusters:
        _add(found, spec, _cluster(spec, pools.pop(spec.name, []), found))
    for orphans in pools.values():
        found.remarks += [f"{spec.identity}: there is no Kafka of its label {CLUSTER_LABEL}" for spec in orphans]


def _add(found: Imported, spec: Spec, translated: Document) -> None:
    kind = "KafkaCluster" if spec.kind == "Kafka" else spec.kind.replace("KafkaTopic", "Topic")
    place = {"namespace": spec.namespace} if spec.namespace else {}
    metadata = {"name": spec.name, **place}
    found.resources.append({"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": translated})
    found.remarks += [f"{spec.identity}: {path} has no counterpart" for path in spec.left()]


def _present(**fields: Any) -> Document:
    """Return the fields that say something."""
    return {name: value for name, value in fields.items() if value not in (None, {}, [])}


def _config(values: Document | None) -> Document:
    """Return settings as Kavka has them: flags are words."""
    return {key: str(value).lower() if isinstance(value, bool) else value for key, value in (values or {}).items()}


def _topic(spec: Spec, found: Imported) -> Document:
    found.remarks.append(
        f"{spec.identity}: Strimzi deletes the topic with its resource, Kavka keeps it without deletionPolicy: Delete"
    )
    return _present(
        clusterRef={"name": spec.cluster},
        topicName=spec.take("topicName"),
        partitions=spec.take("partitions"),
        replicationFactor=spec.take("replicas"),
        config=_config(spec.take("config")),
    )


def _user(spec: Spec, found: Imported) -> Document:
    login, user_name = _login(spec, found), None
    if login["type"] == "tls":
        user_name = f"CN={spec.name}"
    if spec.take("authorization.type") not in (None, "simple"):
        found.remarks.append(f"{spec.identity}: only authorization of type simple has a counterpart")
    quotas = {
        name: spec.take(f"quotas.{name}")
        for name in ("producerByteRate", "consumerByteRate", "requestPercentage", "controllerMutationRate")
    }
    return _present(
        clusterRef={"name": spec.cluster},
        userName=user_name,
        authentication=login,
        acls=[_acl(rule) for rule in spec.take("authorization.acls", [])],
        quotas=_present(**quotas),
    )


def _login(spec: Spec, found: Imported) -> Document:
    kind = spec.take("authentication.type")
    match kind:
        case "scram-sha-512":
            source = spec.take("authentication.password.valueFrom.secretKeyRef")
            return {"type": kind, **_present(passwordFrom=source)}
        case "tls":
            found.remarks.append(f"{spec.identity}: Strimzi issues its certificate, Kavka takes one that others issue")
            return {"type": "tls"}
        case "tls-external":
            return {"type": "tls"}
        case _:
            return {"type": "external"}


def _acl(rule: Document) -> Document:
    resource = rule["resource"]
    kind = RESOURCE_TYPES.get(resource["type"], resource["type"])
    operations = rule.get("operations") or [rule["operation"]]
    host = rule.get("host", "*")
    return _present(
        resource=_present(
            type=kind,
            name=None if kind == "Cluster" else resource.get("name"),
            patternType=PATTERNS.get(resource.get("patternType", "literal")),
        ),
        operations=operations,
        host=None if host == "*" else host,
        permission="Deny" if rule.get("type") == "deny" else None,
    )


def _cluster(spec: Spec, pools: list[Spec], found: Imported) -> Document:
    config = _config(spec.take("kafka.config"))
    for key in NO_CONFIG:
        if config.pop(key, None) is not None:
            found.remarks.append(f"{spec.identity}: spec.kafka.config.{key} is of an older Kafka: left out")
    if spec.take("zookeeper") is not None:
        found.remarks.append(f"{spec.identity}: there is no ZooKeeper; brokers of Kafka 4 have controllers")
    for version in ("kafka.version", "kafka.metadataVersion"):
        spec.take(version)  # the image's
    topology = spec.take("kafka.rack.topologyKey")
    own = _pool(spec, "kafka.", "nodes", found) if "replicas" in (spec.rest.get("kafka") or {}) and not pools else None
    translated = [own] if own else [_pool(pool, "", pool.name, found) for pool in pools]
    for pool in pools:
        found.remarks += [f"{pool.identity}: {path} has no counterpart" for path in pool.left()]
    for nodes in translated if topology else ():
        if "broker" in nodes.get("roles", ["broker"]):
            nodes["topologyKey"] = topology
    return _present(
        nodePools=translated,
        listeners=[_listener(listener, spec, found) for listener in spec.take("kafka.listeners", [])],
        authorization=_authorization(spec, found),
        config=config,
    )


def _authorization(spec: Spec, found: Imported) -> Document | None:
    kind = spec.take("kafka.authorization.type")
    if kind is None:
        return None
    if kind != "simple":
        found.remarks.append(f"{spec.identity}: authorization of type {kind} has no counterpart; ACLs would decide")
    users = [name if ":" in name else f"User:{name}" for name in spec.take("kafka.authorization.superUsers", [])]
    return {"superUsers": users}


def _pool(spec: Spec, prefix: str, name: str, found: Imported) -> Document:
    pod = {key: spec.take(f"{prefix}template.pod.{key}") for key in POD_FIELDS}
    resources, roles = spec.take(f"{prefix}resources"), spec.take(f"{prefix}roles")
    return _present(
        name=name,
        replicas=spec.take(f"{prefix}replicas"),
        roles=roles,
        storage=_storage(spec, f"{prefix}storage", roles, found),
        resources=resources,
        pod=_present(**pod),
    )


def _storage(spec: Spec, path: str, roles: list[str] | None, found: Imported) -> Document:
    kind = spec.take(f"{path}.type")
    if kind != "ephemeral":
        return _present(volumes=list(_volumes(spec, path, kind)))
    limit = spec.take(f"{path}.sizeLimit")
    if roles != ["broker"]:
        found.remarks.append(
            f"{spec.identity}: controllers have volumes; write a size, or give brokers without volumes their own pool"
        )
        return {}
    if limit is None:
        found.remarks.append(f"{spec.identity}: {path}.sizeLimit is asked for; write one such as 10Gi")
    return _present(type="Ephemeral", sizeLimit=limit)


def _volumes(spec: Spec, path: str, kind: str | None) -> Iterator[Document]:
    if kind == "jbod":
        for volume in spec.take(f"{path}.volumes", []):
            if volume.get("type") == "persistent-claim":
                yield _volume(f"data-{volume.get('id', 0)}", volume)
    elif kind == "persistent-claim":
        yield _volume("data", {"size": spec.take(f"{path}.size"), "class": spec.take(f"{path}.class")})


def _volume(name: str, volume: Document) -> Document:
    return _present(name=name, size=volume.get("size"), storageClassName=volume.get("class"))


def _listener(listener: Document, spec: Spec, found: Imported) -> Document:
    name = str(listener["name"]).upper()
    login = (listener.get("authentication") or {}).get("type")
    is_encrypted = bool(listener.get("tls"))
    protocol = {
        (False, False): "PLAINTEXT",
        (True, False): "SSL",
        (False, True): "SASL_PLAINTEXT",
        (True, True): "SASL_SSL",
    }[is_encrypted, login not in (None, "tls")]
    tls: Document = {}
    if login == "tls":
        tls = {"clientAuth": "required", "clientCaSecret": {"name": f"{spec.name}-clients-ca-cert"}}
        found.remarks.append(
            f"{spec.identity}: listener {name} takes certificates that {spec.name}-clients-ca-cert signs"
        )
    elif login not in (None, "scram-sha-512"):
        found.remarks.append(f"{spec.identity}: listener {name} asks for {login}, which is for you to write")
    kind = listener.get("type", "internal")
    if kind not in ("internal", *SERVICES):
        found.remarks.append(f"{spec.identity}: listener {name} of type {kind} has no counterpart; it is internal now")
    for key in sorted(listener.get("configuration") or {}):
        found.remarks.append(f"{spec.identity}: listener {name}: configuration.{key} has no counterpart")
    return _present(
        name=name,
        port=listener.get("port"),
        protocol=protocol,
        sasl={"mechanisms": ["SCRAM-SHA-512"]} if protocol.startswith("SASL") else None,
        tls=tls,
        service={"type": SERVICES[kind]} if kind in SERVICES else None,
    )


RESOURCES: Final[dict[str, Callable[[Spec, Imported], Document]]] = {"KafkaTopic": _topic, "KafkaUser": _user}
