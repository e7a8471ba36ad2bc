"""Strimzi's resources as Kavka's: they are what our own files may be, and nothing is dropped in silence."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from kavka_cli.strimzi import Imported, import_strimzi
from kavka_operator.api.files import load
from tests.unit.operator.person import run

CLUSTER = """
apiVersion: kafka.strimzi.io/v1beta2
kind: Kafka
metadata: {name: prod, namespace: kafka, annotations: {strimzi.io/kraft: enabled}}
spec:
  kafka:
    version: 4.1.0
    metadataVersion: 4.1-IV0
    listeners:
      - {name: plain, port: 9092, type: internal, tls: false}
      - {name: tls, port: 9093, type: internal, tls: true, authentication: {type: scram-sha-512}}
      - {name: outside, port: 9094, type: loadbalancer, tls: true, authentication: {type: scram-sha-512},
         configuration: {finalizers: [x]}}
    authorization: {type: simple, superUsers: [admin, "User:CN=root"]}
    rack: {topologyKey: topology.kubernetes.io/zone}
    config: {min.insync.replicas: 2, auto.create.topics.enable: false, inter.broker.protocol.version: "3.9"}
    metricsConfig: {type: jmxPrometheusExporter}
  entityOperator: {topicOperator: {}, userOperator: {}}
"""
POOLS = """
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaNodePool
metadata: {name: controllers, namespace: kafka, labels: {strimzi.io/cluster: prod}}
spec: {replicas: 3, roles: [controller], storage: {type: persistent-claim, size: 10Gi, deleteClaim: false}}
---
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaNodePool
metadata: {name: brokers, namespace: kafka, labels: {strimzi.io/cluster: prod}}
spec:
  replicas: 3
  roles: [broker]
  resources: {requests: {cpu: "2", memory: 8Gi}}
  jvmOptions: {-Xmx: 4g}
  storage:
    type: jbod
    volumes:
      - {id: 0, type: persistent-claim, size: 100Gi, class: fast}
      - {id: 1, type: persistent-claim, size: 200Gi}
"""
TOPIC = """
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaTopic
metadata: {name: orders, namespace: kafka, labels: {strimzi.io/cluster: prod}}
spec: {topicName: Orders_v1, partitions: 12, replicas: 3, config: {retention.ms: 604800000, preallocate: false}}
"""
USERS = """
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaUser
metadata: {name: etl, namespace: kafka, labels: {strimzi.io/cluster: prod}}
spec:
  authentication: {type: scram-sha-512, password: {valueFrom: {secretKeyRef: {name: etl-password, key: word}}}}
  authorization:
    type: simple
    acls:
      - {resource: {type: topic, name: Orders, patternType: prefix}, operations: [Read, Describe], host: "*"}
      - {resource: {type: group, name: etl}, operation: Read}
      - {resource: {type: cluster}, operations: [IdempotentWrite]}
      - {resource: {type: topic, name: salaries}, operations: [All], type: deny, host: 10.0.0.1}
  quotas: {producerByteRate: 1048576, requestPercentage: 55}
---
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaUser
metadata: {name: gateway, namespace: kafka, labels: {strimzi.io/cluster: prod}}
spec: {authentication: {type: tls}}
"""


Specs = dict[tuple[str, str], Any]


@pytest.fixture
def specs(tmp_path: Path, found: Imported) -> Specs:
    """The specs of all resources, by kind and name, once our own files may be so."""
    (tmp_path / "ours.yaml").write_text(yaml.safe_dump_all(found.resources))
    return {
        (declared.resource.kind, declared.resource.name): declared.document.value["spec"]
        for declared in load([tmp_path / "ours.yaml"])
    }


@pytest.fixture
def found() -> Imported:
    return import_strimzi(list(yaml.safe_load_all(f"{CLUSTER}---{POOLS}---{TOPIC}---{USERS}")))


def test_a_cluster_has_its_pools_listeners_and_settings(specs: Specs) -> None:
    spec = specs["KafkaCluster", "prod"]
    assert spec["nodePools"] == [
        {"name": "controllers", "replicas": 3, "roles": ["controller"],
         "storage": {"volumes": [{"name": "data", "size": "10Gi"}]}},
        {"name": "brokers", "replicas": 3, "roles": ["broker"],
         "storage": {"volumes": [{"name": "data-0", "size": "100Gi", "storageClassName": "fast"},
                                 {"name": "data-1", "size": "200Gi"}]},
         "resources": {"requests": {"cpu": "2", "memory": "8Gi"}}, "topologyKey": "topology.kubernetes.io/zone"},
    ]  # fmt: skip
    scram = {"mechanisms": ["SCRAM-SHA-512"]}
    assert spec["listeners"] == [
        {"name": "PLAIN", "port": 9092, "protocol": "PLAINTEXT"},
        {"name": "TLS", "port": 9093, "protocol": "SASL_SSL", "sasl": scram},
        {"name": "OUTSIDE", "port": 9094, "protocol": "SASL_SSL", "sasl": scram, "service": {"type": "LoadBalancer"}},
    ]
    assert spec["authorization"] == {"superUsers": ["User:admin", "User:CN=root"]}
    assert spec["config"] == {"min.insync.replicas": 2, "auto.create.topics.enable": "false"}


def test_a_topic_keeps_its_name_and_settings(specs: Specs) -> None:
    assert specs["Topic", "orders"] == {
        "clusterRef": {"name": "prod"},
        "topicName": "Orders_v1",
        "partitions": 12,
        "replicationFactor": 3,
        "config": {"retention.ms": 604800000, "preallocate": "false"},
    }


def test_a_user_keeps_its_password_rules_and_limits(specs: Specs) -> None:
    spec = specs["KafkaUser", "etl"]
    password = {"name": "etl-password", "key": "word"}
    assert spec["authentication"] == {"type": "scram-sha-512", "passwordFrom": password}
    assert spec["acls"] == [
        {"resource": {"type": "Topic", "name": "Orders", "patternType": "Prefixed"},
         "operations": ["Read", "Describe"]},
        {"resource": {"type": "Group", "name": "etl", "patternType": "Literal"}, "operations": ["Read"]},
        {"resource": {"type": "Cluster", "patternType": "Literal"}, "operations": ["IdempotentWrite"]},
        {"resource": {"type": "Topic", "name": "salaries", "patternType": "Literal"}, "operations": ["All"],
         "host": "10.0.0.1", "permission": "Deny"},
    ]  # fmt: skip
    assert spec["quotas"] == {"producerByteRate": 1048576, "requestPercentage": 55}
    assert specs["KafkaUser", "gateway"]["userName"] == "CN=gateway"


def test_what_has_no_counterpart_is_told_field_by_field(found: Imported) -> None:
    for words in (
        'Kafka "prod": spec.kafka.metricsConfig.type has no counterpart',
        'Kafka "prod": spec.kafka.config.inter.broker.protocol.version is of an older Kafka: left out',
        'Kafka "prod": listener OUTSIDE: configuration.finalizers has no counterpart',
        'KafkaNodePool "brokers": spec.jvmOptions.-Xmx has no counterpart',
        'KafkaNodePool "controllers": spec.storage.deleteClaim has no counterpart',
        'KafkaUser "gateway": Strimzi issues its certificate, Kavka takes one that others issue',
        'KafkaTopic "orders": Strimzi deletes the topic with its resource, Kavka keeps it',
    ):
        assert [remark for remark in found.remarks if remark.startswith(words)], words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n", "Secret is not Strimzi's: left out"),
        (TOPIC.replace("labels: {strimzi.io/cluster: prod}", ""), 'KafkaTopic "orders" has no label'),
        (POOLS, "there is no Kafka of its label strimzi.io/cluster"),
        ("apiVersion: kafka.strimzi.io/v1beta2\nkind: KafkaConnect\nmetadata: {name: c}\nspec: {}\n", "no such kind"),
        ("apiVersion: kafka.strimzi.io/v1beta2\nmetadata: {name: c}\n", "is not as Strimzi's definitions have it"),
        ("{a: [", "error: "),
        ("- a\n", "is not a resource"),
    ],
)
def test_files_that_are_not_strimzis_are_refused_in_words(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "file.yaml").write_text(text)
    code, said = run("import", "strimzi", str(tmp_path / "file.yaml"))
    assert code == 1
    assert words in said


def test_the_output_is_yaml_and_remarks_follow(tmp_path: Path) -> None:
    (tmp_path / "file.yaml").write_text(CLUSTER + "---" + POOLS)
    code, said = run("import", "strimzi", str(tmp_path / "file.yaml"))
    assert code == 0
    document = yaml.safe_load(said[: said.index('Kafka "prod"')])
    assert (document["apiVersion"], document["kind"]) == ("kavka.dev/v1alpha1", "KafkaCluster")


@pytest.mark.parametrize(
    ("roles", "storage", "translated", "remark"),
    [
        (["broker"], {"sizeLimit": "5Gi"}, {"type": "Ephemeral", "sizeLimit": "5Gi"}, None),
        (["broker"], {}, {"type": "Ephemeral"}, "storage.sizeLimit is asked for; write one such as 10Gi"),
        (["controller", "broker"], {"sizeLimit": "5Gi"}, {}, "controllers have volumes; write a size"),
    ],
)
def test_brokers_without_volumes_stay_so_and_controllers_are_told(
    roles: list[str], storage: dict[str, str], translated: dict[str, str], remark: str | None
) -> None:
    cluster, pools = yaml.safe_load(CLUSTER), list(yaml.safe_load_all(POOLS))
    pools[1]["spec"] |= {"roles": roles, "storage": {"type": "ephemeral", **storage}}
    imported = import_strimzi([cluster, *pools])
    (made,) = [found for found in imported.resources if found["kind"] == "KafkaCluster"]
    assert made["spec"]["nodePools"][1].get("storage", {}) == translated
    told = [words for words in imported.remarks if "volumes; write" in words or "sizeLimit" in words]
    assert [(remark or "") in words for words in told] == ([True] if remark else [])
