"""OAUTHBEARER: clients that we did not write log in by signed tokens; unsigned, foreign and old ones name nobody."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from kafka import KafkaProducer
from kafka.net.sasl.oauth import AbstractTokenProvider

from tests.conformance.security.test_authentications import PREFIX, figures
from tests.conformance.security.test_plain import ANSWER_SECONDS_MAX
from tests.support.programs import kafka_tool
from tests.support.refusals import refusals
from tests.support.servers import Server, free_port, start_kavka
from tests.support.tokens import Issuer
from tests.support.topics import create_topic
from tests.support.waiting import until_outside

pytestmark = pytest.mark.java

CLASSES = "org.apache.kafka.common.security.oauthbearer"
OWN = "listener.name.clients.oauthbearer"
NAME, AUDIENCE = "https://issuer", "kafka"
HOUR_SECONDS = 3600
SHORT_SECONDS = 8


@dataclass(frozen=True, slots=True)
class Trusting:
    """A broker that trusts an issuer, and asks it for its keys."""

    server: Server
    issuer: Issuer
    port: int
    page: str

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def of_librdkafka(self, token: str, seconds: float = HOUR_SECONDS, **more: Any) -> dict[str, Any]:
        return {
            "bootstrap.servers": self.address,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanisms": "OAUTHBEARER",
            "oauth_cb": lambda _: (token, time.time() + seconds),
            "log_level": 0,
            **more,
        }

    def figure(self, name: str) -> int:
        return figures(self.page, "CLIENTS")[f"{PREFIX}{name}_total"]


def claims(seconds: float = HOUR_SECONDS, **changed: Any) -> dict[str, Any]:
    now = time.time()
    return {"sub": "alice", "iss": NAME, "aud": AUDIENCE, "iat": now, "exp": now + seconds, **changed}


@contextmanager
def publishing(keys: bytes) -> Iterator[str]:
    """The page of an authorization server with its keys."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(keys)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/keys"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(scope="module")
def trusting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trusting]:
    directory = tmp_path_factory.mktemp("tokens")
    issuer, page = Issuer(directory / "issuer"), f"127.0.0.1:{free_port()}"
    ports = {name: free_port() for name in ("PLAINTEXT", "CLIENTS", "CONTROLLER")}
    with publishing(issuer.key_set()) as url:
        settings = {
            "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items()),
            "listener.security.protocol.map": "CLIENTS:SASL_PLAINTEXT,PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "controller.quorum.bootstrap.servers": f"127.0.0.1:{ports['CONTROLLER']}",
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            f"{OWN}.sasl.jaas.config": f"{CLASSES}.OAuthBearerLoginModule required;",
            f"{OWN}.sasl.server.callback.handler.class": f"{CLASSES}.OAuthBearerValidatorCallbackHandler",
            "sasl.oauthbearer.jwks.endpoint.url": url,
            "sasl.oauthbearer.expected.issuer": NAME,
            "sasl.oauthbearer.expected.audience": AUDIENCE,
            "kavka.admin.listener": page,
        }
        server = start_kavka(directory / "broker", settings)
        yield Trusting(server, issuer, ports["CLIENTS"], page)
        server.kill()


def test_librdkafka_produces_and_consumes(trusting: Trusting, name: str) -> None:
    create_topic(trusting.server, name)
    of_librdkafka = trusting.of_librdkafka(trusting.issuer.token(claims()))
    producer = Producer(of_librdkafka)
    producer.produce(name, b"x")
    assert producer.flush(ANSWER_SECONDS_MAX) == 0
    consumer = Consumer({**of_librdkafka, "group.id": name, "auto.offset.reset": "earliest"})
    consumer.subscribe([name])
    read = consumer.consume(1, ANSWER_SECONDS_MAX)
    consumer.close()
    assert [message.value() for message in read] == [b"x"]


def test_kafka_python_produces(trusting: Trusting, name: str) -> None:
    token = trusting.issuer.token(claims(), "RS512")

    class Given(AbstractTokenProvider):  # type: ignore[misc]
        def token(self) -> str:
            return token

    create_topic(trusting.server, name)
    producer = KafkaProducer(
        bootstrap_servers=trusting.address,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="OAUTHBEARER",
        sasl_oauth_token_provider=Given(),
    )
    try:
        assert producer.send(name, b"x").get(ANSWER_SECONDS_MAX).offset == 0
    finally:
        producer.close()


def test_the_java_tools_log_in(trusting: Trusting, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    create_topic(trusting.server, name)
    token, client = tmp_path / "token", tmp_path / "client.properties"
    token.write_text(trusting.issuer.token(claims(scope="read")))
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={token.as_uri()}")
    client.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER\n"
        f"sasl.jaas.config={CLASSES}.OAuthBearerLoginModule required;\n"
        f"sasl.login.callback.handler.class={CLASSES}.OAuthBearerLoginCallbackHandler\n"
        f"sasl.oauthbearer.token.endpoint.url={token.as_uri()}\n"
    )
    words = kafka_tool("topics", "--bootstrap-server", trusting.address, "--command-config", str(client), "--list")
    assert name in words.split()


def test_a_session_ends_with_its_token_and_librdkafka_renews_it(trusting: Trusting, name: str) -> None:
    create_topic(trusting.server, name)
    renewed = trusting.figure("successful_reauthentication")
    fresh = {"oauth_cb": lambda _: (trusting.issuer.token(claims(SHORT_SECONDS)), time.time() + SHORT_SECONDS)}
    producer = Producer({**trusting.of_librdkafka(""), **fresh})

    def is_renewed() -> bool:
        producer.produce(name, b"x")
        assert producer.flush(ANSWER_SECONDS_MAX) == 0
        return trusting.figure("successful_reauthentication") > renewed

    until_outside(is_renewed)


@pytest.mark.parametrize("changed", [{"aud": "mail"}, {"iss": "https://other"}, {"exp": 10}])
def test_a_token_for_others_is_refused(trusting: Trusting, changed: dict[str, Any]) -> None:
    refuses(trusting, trusting.of_librdkafka(trusting.issuer.token(claims(**changed))))


def test_a_token_of_another_issuer_is_refused(trusting: Trusting, tmp_path: Path) -> None:
    refuses(trusting, trusting.of_librdkafka(Issuer(tmp_path).token(claims())))
    other = Issuer(tmp_path, "other").token(claims())
    refuses(trusting, trusting.of_librdkafka(other))


def test_a_token_that_nobody_has_signed_is_refused(trusting: Trusting, tmp_path: Path) -> None:
    """As Java's client and librdkafka make them where they are asked to."""
    unsigned = {"enable.sasl.oauthbearer.unsecure.jwt": True, "sasl.oauthbearer.config": "principal=alice"}
    of_librdkafka = trusting.of_librdkafka("") | unsigned
    del of_librdkafka["oauth_cb"]
    refuses(trusting, of_librdkafka)
    client = tmp_path / "client.properties"
    client.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER\n"
        f'sasl.jaas.config={CLASSES}.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="alice";\n'
    )
    address = ("--bootstrap-server", trusting.address, "--command-config", str(client))
    with pytest.raises(AssertionError, match="invalid_token"):
        kafka_tool("topics", *address, "--list")


def refuses(trusting: Trusting, of_librdkafka: dict[str, Any]) -> None:
    """See a client turned away. The broker's log says why, and withholds lines where there are many."""
    failed = trusting.figure("failed_authentication")
    told = refusals(of_librdkafka)
    assert told
    assert "invalid_token" in told[0]
    assert trusting.figure("failed_authentication") > failed


def test_no_token_is_in_the_log(trusting: Trusting) -> None:
    token = trusting.issuer.token(claims(exp=11))
    refuses(trusting, trusting.of_librdkafka(token))
    assert not any(part in Path(trusting.server.log_path).read_text() for part in token.split("."))
