"""Objects for the tables: our resources in a few words, and what a row says of one."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kavka_operator.api import API_VERSION
from tests.support.control_plane import Json


@dataclass(frozen=True, slots=True)
class Row:
    """An object and its verdict, which both the API server and the models must give."""

    name: str
    resource: Json
    is_good: bool


@dataclass(frozen=True, slots=True)
class Change:
    """An object with a status, what it shall become, and whether it may."""

    name: str
    before: Json
    after: Json
    is_good: bool
    status: Mapping[str, Any] = field(default_factory=dict)


def resource(kind: str, name: str, spec: Json) -> Json:
    """A resource as a person writes it."""
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}


def cluster(name: str = "main", /, **spec: Any) -> Json:
    """A KafkaCluster of three nodes."""
    return resource("KafkaCluster", name, {"nodePools": [pool()], **spec})


def external(**asked: object) -> Json:
    """A KafkaCluster that somebody else runs."""
    return resource("KafkaCluster", "main", {"external": asked})


def pool(name: str = "nodes", /, **fields: Any) -> Json:
    """A node pool."""
    return {"name": name, "replicas": 3, **fields}


def volumes(*parts: Json) -> Json:
    """A pool's storage."""
    return {"volumes": list(parts)}


def listener(port: int, name: str = "PLAINTEXT", /, **fields: Any) -> Json:
    """A listener for clients."""
    return {"name": name, "port": port, **fields}


def topic(name: str = "t", /, **spec: Any) -> Json:
    """A Topic of the cluster `main`."""
    return resource("Topic", name, {**OF_MAIN, **spec})


def quota(name: str = "q", /, **spec: Any) -> Json:
    """A ClientQuota of a user of the cluster `main`."""
    usual = {"entity": {"user": {"name": "alice"}}, "limits": {"producerByteRate": "10Mi"}}
    return resource("ClientQuota", name, {**OF_MAIN, **usual, **spec})


def limited(**limits: Any) -> Json:
    """A ClientQuota with these limits."""
    return quota(limits=limits)


def user(name: str = "u", /, **spec: Any) -> Json:
    """A KafkaUser of the cluster `main`."""
    return resource("KafkaUser", name, {**OF_MAIN, **spec})


def ruled(**acl: Any) -> Json:
    """A KafkaUser with one access rule: to read a topic, unless it says otherwise."""
    return user(acls=[{"resource": {"type": "Topic", "name": "t"}, "operations": ["Read"], **acl}])


def address(text: object) -> Json:
    """A ClientQuota of an address."""
    return quota(entity={"ip": {"name": text}}, limits={"connectionCreationRate": 5})


def connecting(rate: float) -> Json:
    """A ClientQuota of the default address that allows so many connections a second."""
    return quota(entity={"ip": {"default": True}}, limits={"connectionCreationRate": rate})


OF_MAIN: Json = {"clusterRef": {"name": "main"}}
