"""What an Apache Kafka asks of clients: each kind of listener lets the operator in, and says why it does not."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kavka_operator.domain.access import Security
from kavka_operator.domain.plan import CreateTopic
from kavka_operator.kafka.admin import AdminError, BarredError
from kavka_operator.kafka.client import KafkaClient
from tests.support.handshakes import sockets_collected
from tests.support.secured import MECHANISMS, PASSWORD, USER, Secured, set_scram, start_secured
from tests.support.servers import CLUSTER_ID
from tests.support.waiting import until_outside

pytestmark = [pytest.mark.java, pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")]

collected = pytest.fixture(autouse=True)(sockets_collected)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    directory: Path = tmp_path_factory.mktemp("secured")
    running = start_secured(directory)
    yield running
    running.server.kill()


def tls(secured: Secured) -> Security:
    return Security(is_tls=True, authority=secured.certificates.text("ca.crt"))


def mutual(secured: Secured) -> Security:
    signed = secured.certificates
    return replace(tls(secured), certificate=signed.text("client.crt"), key=signed.text("client.key"))


def user(secured: Secured, mechanism: str, password: str = PASSWORD) -> Security:
    return replace(tls(secured), mechanism=mechanism, username=USER, password=password)


def used(address: str, security: Security, name: str) -> None:
    """Look at the cluster, and make a topic in it."""
    client = KafkaClient(address, security)
    try:
        assert client.look(()).cluster_id == CLUSTER_ID
        client.perform(CreateTopic(name, 1, 1, {}))
        until_outside(lambda: name in client.look([name]).topics)  # a broker shows it a little after it has answered
        assert client.survey().quorum.leader == 1
    finally:
        client.close()


def test_a_listener_is_known_by_its_authority(secured: Secured, name: str) -> None:
    used(secured.address("TLS"), tls(secured), name)


def test_the_operator_is_known_by_its_certificate(secured: Secured, name: str) -> None:
    used(secured.address("MUTUAL"), mutual(secured), name)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_user_with_a_password(secured: Secured, name: str, mechanism: str) -> None:
    used(secured.address("SASL"), user(secured, mechanism), f"{name}-{mechanism}")


def refused(address: str, security: Security) -> BarredError:
    with pytest.raises(BarredError) as caught:
        KafkaClient(address, security).close()  # where it is let in: it would connect again and again
    return caught.value


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_wrong_password_is_refused_with_the_field(secured: Secured, mechanism: str) -> None:
    error = refused(secured.address("SASL"), user(secured, mechanism, "wrong"))
    assert error.reason == "NotAuthenticated"
    assert str(error).startswith(f"spec.external.sasl: Kafka refuses user 'kavka' by {mechanism}")


def test_an_authority_that_is_missing(secured: Secured) -> None:
    error = refused(secured.address("TLS"), Security(is_tls=True))
    assert (error.reason, "caSecret" in str(error)) == ("NotTrusted", True)


def test_a_certificate_of_another_name(secured: Secured) -> None:
    error = refused(f"127.0.0.1:{secured.ports['TLS']}", tls(secured))
    assert (error.reason, "of another name" in str(error)) == ("NotTrusted", True)


def test_a_certificate_of_ours_that_is_missing(secured: Secured) -> None:
    error = refused(secured.address("MUTUAL"), tls(secured))
    assert (error.reason, "clientSecret" in str(error)) == ("NotTrusted", True)


def test_a_secret_that_is_no_certificate_is_a_bad_secret(secured: Secured) -> None:
    assert refused(secured.address("TLS"), replace(tls(secured), authority="x")).reason == "BadSecret"
    assert refused(secured.address("MUTUAL"), replace(mutual(secured), key="x")).reason == "BadSecret"


@pytest.mark.parametrize(
    ("host", "listener", "is_tls", "words"),
    [
        ("localhost", "TLS", False, "see spec.external.tls"),
        ("127.0.0.1", "PLAINTEXT", True, "does not speak TLS there"),
        ("no-such-host.invalid", "TLS", True, "DNS"),
    ],
)
def test_an_address_that_is_wrong_is_said_so(
    secured: Secured, host: str, listener: str, is_tls: bool, words: str
) -> None:
    with pytest.raises(AdminError, match=words) as caught:
        KafkaClient(f"{host}:{secured.ports[listener]}", Security(is_tls=is_tls))
    assert caught.value.retriable, "it may come"


def test_a_changed_password_is_that_of_the_next_connection(secured: Secured) -> None:
    try:
        set_scram(secured, "SCRAM-SHA-256", "other")
        assert refused(secured.address("SASL"), user(secured, "SCRAM-SHA-256")).reason == "NotAuthenticated"
        KafkaClient(secured.address("SASL"), user(secured, "SCRAM-SHA-256", "other")).close()
    finally:
        set_scram(secured, "SCRAM-SHA-256", PASSWORD)
