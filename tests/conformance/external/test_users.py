"""KafkaUsers of an Apache Kafka that somebody else runs, where the operator too logs in by SCRAM over TLS and is one
super user among access rules.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError

from kavka_broker.core.quota.entity import Entity
from kavka_operator.domain.access_rules import Binding
from kavka_operator.domain.plan import AlterQuota, DeleteAcls, DropCredential, SetCredential
from kavka_operator.kafka.client import KafkaClient
from tests.conformance.external.test_thousands import COUNT, Scene
from tests.conformance.external.test_up import secret as written
from tests.conformance.security.test_kafka_users import RULES, USER, is_let_in, produced, rules_of
from tests.conformance.security.test_kafka_users import Scene as UpScene
from tests.operator.local.support import Kavka, wait_until
from tests.support.programs import kafka_tool
from tests.support.secured import EXTERNAL, PASSWORD, Secured, start_secured
from tests.support.secured import USER as OPERATOR
from tests.support.topics import create_topic
from tests.support.waiting import until_outside
from tests.unit.operator.fakes import user

pytestmark = [pytest.mark.java]

AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": f"User:ANONYMOUS;User:{OPERATOR}",  # ANONYMOUS reaches the listeners of the nodes
}
QUOTAS = "  quotas: {producerByteRate: 1Mi, consumerByteRate: 2Mi}\n"
WRITES = {"AlterUserScramCredentials", "CreateAcls", "DeleteAcls", "AlterClientQuotas"}
CALLS_MAX = 50  # in a look that makes a thousand users: it looks again until nothing is left to do
GIVEN = {"producer_byte_rate": 1048576.0, "consumer_byte_rate": 2097152.0}


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    running = start_secured(tmp_path_factory.mktemp("secured"), AUTHORIZER)
    for topic in ("orders", "secret"):
        create_topic(running.server, topic)
    yield running
    running.server.kill()


@pytest.fixture
def scene(secured: Secured, tmp_path: Path) -> Iterator[UpScene]:
    kavka = Kavka(tmp_path)
    written(kavka.cluster / "secrets" / "authority", **{"ca.crt": secured.certificates.text("ca.crt")})
    written(kavka.cluster / "secrets" / "user", username=OPERATOR, password=PASSWORD)
    yield UpScene(secured.server, kavka, EXTERNAL % secured.address("SASL"))
    kavka.end()


def trust(secured: Secured) -> dict[str, Any]:
    """What a client has to know besides its Secret: who signs the certificates of an external Kafka."""
    return {"ssl.ca.location": str(secured.certificates.directory / "ca.crt")}


def correction(scene: UpScene, name: str) -> str:
    """What was last put back of a user."""
    found: dict[str, str] = scene.document(name)["status"].get("lastCorrection") or {}
    return found.get("message", "")


def test_a_user_is_made_corrected_rotated_and_deleted(scene: UpScene, secured: Secured, tmp_path: Path) -> None:
    scene.apply(USER % "etl" + RULES + QUOTAS)
    scene.until_ready("etl")
    first, ca = scene.secret("etl"), trust(secured)
    assert (first["security.protocol"], first["bootstrap.servers"]) == ("SASL_SSL", secured.address("SASL"))
    assert produced(first, "orders", **ca) is None
    refused = produced(first, "secret", **ca)
    assert refused is not None
    assert refused.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    java = tmp_path / "client.properties"
    pem = f"ssl.truststore.type=PEM\nssl.truststore.location={ca['ssl.ca.location']}\n"
    java.write_text(f"{first['client.properties']}\n{pem}")
    words = ("--bootstrap-server", first["bootstrap.servers"], "--topic", "orders", "--from-beginning")
    assert "x\n" in kafka_tool(
        "console-consumer", *words, "--group", "etl-1", "--max-messages", "1", "--command-config", str(java)
    )

    client = KafkaClient(secured.server.bootstrap)
    rules = rules_of(client.access([1]), "etl")
    gone = next(rule for rule in rules if rule.operation == "Write")
    client.perform(DeleteAcls("User:etl", (gone,)))
    wait_until(lambda: "Write" in correction(scene, "etl"), "a rule that is lost is told")
    wait_until(lambda: rules_of(client.access([1]), "etl") == rules, "and made again")
    client.perform(AlterQuota(Entity("etl", None), {"producer_byte_rate": 5.0}))
    wait_until(lambda: client.look(()).quotas.get(Entity("etl", None)) == GIVEN, "a limit is put back")
    client.perform(SetCredential("etl", "SCRAM-SHA-512", 4096, "another"))
    wait_until(lambda: "was another" in correction(scene, "etl"), "a password of another hand is told")
    wait_until(lambda: is_let_in(first, **ca), "and that of the Secret is in force again")

    scene.apply(USER % "etl" + "  authentication: {rotate: now}\n" + RULES + QUOTAS)
    wait_until(lambda: scene.secret("etl")["password"] != first["password"], "the password is rotated")
    scene.until_ready("etl")
    wait_until(lambda: is_let_in(scene.secret("etl"), **ca), "the new password is in force")
    assert not is_let_in(first, **ca)

    last = scene.secret("etl")
    assert scene.kavka.run("delete", "kvu", "etl")[0] == 0
    wait_until(lambda: "etl" not in client.access([1]).credentials, "the password is gone")
    wait_until(lambda: not rules_of(client.access([1]), "etl"), "the rules are gone")
    wait_until(lambda: Entity("etl", None) not in client.look(()).quotas, "the limits are gone")
    assert not is_let_in(last, **ca)
    client.close()
    for hidden in (first["password"], last["password"], PASSWORD):
        assert hidden not in scene.kavka.said


def test_a_thousand_users_take_few_requests_and_at_rest_none_writes(secured: Secured) -> None:
    external = {
        "bootstrapServers": secured.address("SASL"),
        "tls": {"caSecret": {"name": "authority"}},
        "sasl": {"mechanism": "SCRAM-SHA-512", "secretRef": {"name": "user"}},
    }
    secrets = {
        "authority": {"ca.crt": secured.certificates.text("ca.crt")},
        "user": {"username": OPERATOR, "password": PASSWORD},
    }
    acls = [{"resource": {"type": "Topic", "name": "orders"}, "operations": ["Write", "Describe"]}]
    wanted = [user(f"u{each}", acls=acls, quotas={"producerByteRate": 1_000_000 + each}) for each in range(COUNT)]
    with Scene(external, *wanted, read_secret=secrets.__getitem__) as scene:
        calls = scene.look()
        assert {calls[kind] for kind in WRITES - {"DeleteAcls"}} == {COUNT // 200}, calls
        assert sum(calls.values()) <= CALLS_MAX, calls
        scene.settle()
        before = scene.resources.writes, scene.secrets.writes
        assert not WRITES & scene.look().keys()
        assert (scene.resources.writes, scene.secrets.writes) == before
        for name in ("u0", f"u{COUNT - 1}"):
            given = dict(scene.secrets.kept["default", name].texts)
            assert produced(given, "orders", **trust(secured)) is None

        client = KafkaClient(secured.server.bootstrap)
        client.perform_many([DropCredential(f"u{each}", "SCRAM-SHA-512") for each in (7, 8, 9)])
        write = Binding("Allow", "Write", "Topic", "Literal", "*", "orders")
        client.perform_many([DeleteAcls(f"User:u{each}", (write,)) for each in (7, 8)])

        def is_gone() -> bool:
            told = client.access([1])
            rules = rules_of(told, "u7") | rules_of(told, "u8")
            return len(told.credentials) == COUNT - 3 + 1 and write not in rules  # and the operator's own

        until_outside(is_gone)
        calls = scene.look()  # the next one asks again where the broker shows it later
        assert (calls["AlterUserScramCredentials"], calls["CreateAcls"]) == (1, 1), calls
        scene.settle()
        found = client.access([1])
        assert len(found.credentials) == COUNT + 1
        assert all(write in rules_of(found, each.name) for each in wanted)
        client.close()
