"""`kavka diff` and `--dry-run`: what a change would do, without doing any of it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kavka_cli import dry_run
from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.domain.plan import AddPartitions, AlterBrokers, CreateTopic
from kavka_operator.kafka.admin import Admin, AdminError
from kavka_operator.platform.local import node_identity
from kavka_operator.platform.local.files import Lock
from kavka_operator.platform.local.layout import Layout
from kavka_operator.platform.local.server_properties import local_nodes
from kavka_operator.platform.local.store import Store
from tests.unit.operator.fakes import FakeKafka
from tests.unit.operator.person import Person
from tests.unit.operator.test_local_pieces import FILE

QUOTA = """
---
apiVersion: kavka.dev/v1alpha1
kind: ClientQuota
metadata: {name: etl}
spec: {clusterRef: {name: main}, entity: {user: {default: true}}, limits: {producerByteRate: 1Mi}}
"""
EXAMPLES = Path(__file__).parents[3] / "examples"
DEFAULTS = "default.replication.factor, offsets.topic.replication.factor"  # those of two brokers
NOT_RUNNING = 'error: KafkaCluster "main" is not running; start it with `kavka up`'


@pytest.fixture
def person(tmp_path: Path) -> Person:
    return Person(tmp_path)


@pytest.fixture
def kafka(person: Person, monkeypatch: pytest.MonkeyPatch) -> FakeKafka:
    """A Kafka that answers for the cluster "main"."""
    answering = FakeKafka()

    @contextmanager
    def connected(layout: Layout, otherwise: str) -> Iterator[Admin]:
        yield answering

    monkeypatch.setattr(dry_run, "connected", connected)
    return answering


def stored(person: Person) -> dict[str, str]:
    """Every file of the state directory and what it holds, but for the lock of the store."""
    files = (path for path in (person.directory / "state").rglob("*") if path.is_file() and path.name != "store.lock")
    return {str(path): path.read_text() for path in files}


def test_what_was_applied_does_not_differ(person: Person) -> None:
    assert person.types("apply", "-f", person.file(FILE + QUOTA))[0] == 0
    assert person.types("diff", "-f", person.file(FILE + QUOTA)) == (0, "")
    in_another_order = FILE.replace(
        "{clusterRef: {name: main}, partitions: 3}", "{partitions: 3, clusterRef: {name: main}}"
    )
    assert person.types("diff", "-f", person.file(in_another_order)) == (0, "")


@pytest.mark.parametrize(
    "example",
    [path for path in sorted(EXAMPLES.glob("*.yaml")) if path.stem != "ephemeral"],  # which local brokers refuse
    ids=lambda path: path.stem,
)
def test_an_example_that_was_applied_does_not_differ(person: Person, example: Path) -> None:
    if example.stem != "kubernetes":  # whose cluster is another
        person.types("apply", "-f", str(EXAMPLES / "quickstart.yaml"))
    assert person.types("apply", "-f", str(example))[0] == 0
    assert person.types("diff", "-f", str(example)) == (0, "")


def test_a_difference_is_shown_as_kubectl_diff_shows_it(person: Person) -> None:
    person.types("apply", "-f", person.file())
    before = stored(person)
    code, said = person.types("diff", "-f", person.file(FILE.replace("partitions: 3", "partitions: 6") + QUOTA))
    assert (code, stored(person)) == (1, before)
    assert (
        said
        == """\
diff -u -N LIVE/kavka.dev.v1alpha1.Topic.default.orders MERGED/kavka.dev.v1alpha1.Topic.default.orders
--- LIVE/kavka.dev.v1alpha1.Topic.default.orders
+++ MERGED/kavka.dev.v1alpha1.Topic.default.orders
@@ -8,4 +8,4 @@
 spec:
   clusterRef:
     name: main
-  partitions: 3
+  partitions: 6
diff -u -N LIVE/kavka.dev.v1alpha1.ClientQuota.default.etl MERGED/kavka.dev.v1alpha1.ClientQuota.default.etl
--- LIVE/kavka.dev.v1alpha1.ClientQuota.default.etl
+++ MERGED/kavka.dev.v1alpha1.ClientQuota.default.etl
@@ -0,0 +1,13 @@
+apiVersion: kavka.dev/v1alpha1
+kind: ClientQuota
+metadata:
+  name: etl
+  namespace: default
+spec:
+  clusterRef:
+    name: main
+  entity:
+    user:
+      default: true
+  limits:
+    producerByteRate: 1Mi
"""
    )


def test_a_resource_that_was_deleted_meanwhile_differs(person: Person) -> None:
    person.types("apply", "-f", person.file())
    person.types("delete", "kvt", "orders")
    code, said = person.types("diff", "-f", person.file())
    assert (code, "-  deletionTimestamp: " in said) == (1, True), said


def test_diff_tells_an_error_from_a_difference(person: Person) -> None:
    assert person.types("diff") == (2, "error: name a resource file: kavka diff -f FILE\n")
    code, said = person.types("diff", "-f", person.file(FILE.replace("partitions: 3", "partitions: 0")))
    assert (code, "spec.partitions" in said) == (2, True)


def test_a_client_dry_run_says_what_would_be_and_writes_nothing(person: Person) -> None:
    assert person.types("apply", "--dry-run", "-f", person.file()) == (
        0,
        "kafkacluster.kavka.dev/main created (dry run)\ntopic.kavka.dev/orders created (dry run)\n",
    )
    assert stored(person) == {}
    person.types("apply", "-f", person.file())
    before = stored(person)
    changed = person.file(FILE.replace("partitions: 3", "partitions: 6"))
    assert person.types("apply", "-f", changed, "--dry-run=client") == (
        0,
        "kafkacluster.kavka.dev/main unchanged (dry run)\ntopic.kavka.dev/orders configured (dry run)\n",
    )
    assert person.types("delete", "--dry-run", "kvt/orders") == (
        0,
        'topic.kavka.dev/orders deleted (dry run); topic "orders" itself stays (deletionPolicy: Retain)\n',
    )
    code, said = person.types("delete", "-f", changed, "--dry-run")
    assert (code, said.splitlines()[0].split(";")[0]) == (1, "topic.kavka.dev/orders deleted (dry run)")
    assert 'KafkaCluster "main" has its records in' in said.splitlines()[1]
    assert stored(person) == before


def test_a_dry_run_refuses_what_apply_refuses(person: Person) -> None:
    code, said = person.types("apply", "--dry-run", "-f", person.file(FILE.replace("partitions: 3", "partitions: 0")))
    assert (code, said.splitlines()[-1]) == (1, "nothing was applied: 1 error")


def test_a_server_dry_run_needs_the_server(person: Person) -> None:
    person.types("apply", "-f", person.file())
    changed = person.file(FILE.replace("partitions: 3", "partitions: 6"))
    assert person.types("apply", "-f", changed, "--dry-run=server") == (
        1,
        f"{NOT_RUNNING}; to check the files alone, use --dry-run=client\n",
    )


def test_a_cluster_that_begins_to_run_cannot_be_asked_yet(person: Person) -> None:
    person.types("apply", "-f", person.file())
    lock = Lock(store(person).layout.lock)
    assert lock.take()
    try:
        code, said = person.types("explain", "quota", "--client-id", "etl")
    finally:
        lock.release()
    assert (code, said) == (1, 'error: KafkaCluster "main" has no brokers yet; see `kavka get kvc`\n')
    assert person.types("explain", "quota", "--cluster", "main") == (1, f"{NOT_RUNNING}\n")


def test_a_server_dry_run_says_what_would_be_done_to_kafka(person: Person, kafka: FakeKafka) -> None:
    person.types("apply", "-f", person.file())
    before = stored(person)
    changed = person.file(FILE.replace("partitions: 3", "partitions: 6") + QUOTA)
    assert person.types("apply", "-f", changed, "--dry-run=server") == (
        0,
        """\
kafkacluster.kavka.dev/main unchanged (server dry run)
topic.kavka.dev/orders configured (server dry run)
  create topic "orders"
clientquota.kavka.dev/etl created (server dry run)
  set producer_byte_rate=1Mi for user=<default>
""",
    )
    kafka.make("orders", partitions=3)
    assert (
        '  add partitions to topic "orders", to have 6\n' in person.types("apply", "-f", changed, "--dry-run=server")[1]
    )
    assert (kafka.writes, stored(person)) == ([], before)
    assert {type(action) for action in kafka.checked} >= {CreateTopic, AddPartitions}


def test_a_server_dry_run_fails_where_apply_would_be_refused(person: Person, kafka: FakeKafka) -> None:
    person.types("apply", "-f", person.file())
    kafka.make("orders", partitions=9)
    code, said = person.types(
        "apply", "-f", person.file(FILE.replace("partitions: 3", "partitions: 6")), "--dry-run=server"
    )
    assert (code, said.splitlines()[-1]) == (
        1,
        'error: Topic "orders": Refused: the topic has 9 partitions and 6 are wanted; partitions may only grow',
    )
    kafka.refuse = AdminError("could not add partitions: the policy says no")
    code, said = person.types(
        "apply", "-f", person.file(FILE.replace("partitions: 3", "partitions: 12")), "--dry-run=server"
    )
    assert (code, said.splitlines()[-1]) == (
        1,
        'error: Topic "orders": Rejected: could not add partitions: the policy says no',
    )


def test_a_server_dry_run_of_a_deletion_says_what_becomes_of_the_topic(person: Person, kafka: FakeKafka) -> None:
    person.types("apply", "-f", person.file(FILE.replace("partitions: 3", "partitions: 3, deletionPolicy: Delete")))
    there = kafka.make("orders", partitions=3)
    (topic,) = (each for each in store(person).all() if each.name == "orders")
    store(person).set_status(topic, topic.status.replaced({"topic_id": there.topic_id}))
    assert person.types("delete", "kvt", "orders", "--dry-run=server") == (
        0,
        'topic.kavka.dev/orders deleted (server dry run)\n  delete topic "orders"\n',
    )
    assert (list(kafka.topics), kafka.writes) == (["orders"], [])


def store(person: Person) -> Store:
    return Store(Layout.of(person.directory / "state", "default", "main"))


def test_a_file_with_a_cluster_deletes_what_belongs_to_it_and_not_the_cluster(person: Person) -> None:
    person.types("apply", "-f", person.file())
    code, said = person.types("delete", "-f", person.file())
    assert (code, said.splitlines()[0]) == (1, "topic.kavka.dev/orders marked; it goes when the cluster runs")
    assert 'error: KafkaCluster "main" has its records in' in said.splitlines()[1]


def test_unreadable_resources_of_one_name_are_told_apart_by_namespace(person: Person) -> None:
    for namespace in ("default", "other"):
        text = FILE.replace("{name: main}", f"{{name: main, namespace: {namespace}}}")
        text = text.replace("{name: orders,", f"{{name: orders, namespace: {namespace},")
        person.types("apply", "-f", person.file(text))
        layout = Layout.of(person.directory / "state", namespace, "main")
        (layout.resources / "topic.orders.yaml").write_text("{not: [yaml")
    assert person.types("delete", "kvt/orders", "-n", "other")[0] == 0
    first, second = (Layout.of(person.directory / "state", namespace, "main") for namespace in ("default", "other"))
    assert "deletionTimestamp" in (second.resources / "topic.orders.yaml").read_text()
    assert (first.resources / "topic.orders.yaml").read_text() == "{not: [yaml"


def test_a_server_dry_run_of_a_cluster_names_the_nodes_that_would_restart(person: Person, kafka: FakeKafka) -> None:
    person.types("apply", "-f", person.file())
    layout = store(person).layout
    (cluster,) = (each for each in store(person).all() if isinstance(each, KafkaCluster))
    known = node_identity.Members().joined_by(cluster, lambda _: True)
    node_identity.keep(layout, known)
    (node,) = local_nodes(cluster, layout, known)
    layout.properties(0).write_text(node.properties)
    pools = "nodePools: [{name: nodes}, {name: more, roles: [broker]}]"
    config = "config: {queued.max.requests: 400, log.retention.ms: 1000}"
    changed = FILE.replace("{nodePools: [{name: nodes}]}", f"{{{pools}, {config}}}")
    code, said = person.types("apply", "-f", person.file(changed), "--dry-run=server")
    assert (code, said.splitlines()[:4]) == (
        0,
        [
            "kafkacluster.kavka.dev/main configured (server dry run)",
            "  set log.retention.ms=1000 on all brokers, without a restart",
            f"  restart node 0: {DEFAULTS}, queued.max.requests and 2 more have changed",
            "  start node 100",
        ],
    )
    assert kafka.checked == [AlterBrokers({"log.retention.ms": "1000"})]
