"""The file of --command-config: what Kafka's tools take, and nothing that would be read over."""

import ssl
from argparse import ArgumentParser
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import kafka
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kavka_broker.core.config.properties import format_properties
from kavka_cli.client_properties import client_of_file, java_properties
from kavka_cli.local_clusters import add_state_directory
from kavka_cli.output import CommandError
from kavka_cli.target import TargetOptions, add_target, find_target, target_options
from kavka_operator.domain.access import OF_RESOURCE, OPEN, Security
from kavka_operator.domain.observed import Login
from kavka_operator.domain.user_secret import Notes, texts_of
from kavka_operator.kafka.admin import BarredError
from kavka_operator.kafka.connection import context_of, told_in_words
from tests.unit.operator.fakes import user
from tests.unit.operator.person import run

CERTIFICATE = "-----BEGIN CERTIFICATE-----\nMII=\n-----END CERTIFICATE-----"
KEY = "-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


def read(directory: Path, text: str) -> Security:
    file = directory / "client.properties"
    file.write_text(text)
    return client_of_file(file)[0]


def test_the_file_of_a_user_says_where_to_begin_and_the_environment_whom_to_trust(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = Notes(datetime.now(UTC), None, 5000, "key")
    texts = texts_of(user("auditor"), "secret", notes, Login("SASL_SSL", ("a:9092", "b:9092")), {})
    file, trusted = tmp_path / "client.properties", tmp_path / "ca.crt"
    file.write_text(texts["client.properties"])
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    alone = Security(True, None, None, None, "SCRAM-SHA-512", "auditor", "secret")
    assert client_of_file(file) == (alone, "a:9092,b:9092")
    trusted.write_text(CERTIFICATE)
    monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
    assert client_of_file(file)[0] == replace(alone, authority=CERTIFICATE)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none"))
    with pytest.raises(CommandError, match=r"SSL_CERT_FILE: .*none cannot be read"):
        client_of_file(file)


def test_an_empty_file_asks_for_nothing(tmp_path: Path) -> None:
    assert read(tmp_path, "# nothing\n") == OPEN
    assert java_properties(OPEN) == {}


def test_what_brokers_refuse_is_told_by_the_property_of_the_file(tmp_path: Path) -> None:
    """A resource has other names for the same."""
    login = f'sasl.jaas.config={PLAIN} required username="a" password="b";\nsasl.mechanism=PLAIN'
    trust = "ssl.truststore.type=PEM\nssl.truststore.certificates=nothing"
    found = read(tmp_path, f"security.protocol=SASL_SSL\n{login}\n{trust}\n")
    with pytest.raises(BarredError, match=r"^ssl\.truststore\.location: no certificate as PEM"):
        context_of(found)
    words = told_in_words("a:9092", found, kafka.errors.SaslAuthenticationFailedError("wrong"))
    assert str(words).startswith("--command-config: sasl.jaas.config: Kafka refuses user 'a' by PLAIN; put the right")
    words = told_in_words("a:9092", replace(found, origin=OF_RESOURCE), kafka.errors.SaslAuthenticationFailedError(""))
    assert str(words).startswith("spec.external.sasl: Kafka refuses user 'a' by PLAIN; put the right")


@pytest.mark.parametrize("end", [ConnectionResetError(104, "Connection reset by peer"), ssl.SSLEOFError(8, "EOF")])
def test_who_ends_a_handshake_does_not_speak_tls(end: OSError) -> None:
    error = kafka.errors.KafkaConnectionError(f"Handshake failed: {end}")
    error.__context__ = end  # the library raises it while it handles the other
    words = told_in_words("a:9092", Security(is_tls=True), error)
    assert "does not speak TLS there" in str(words)
    assert words.retriable, "it may come"


def test_scram_over_tls_with_files(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text(CERTIFICATE)
    (tmp_path / "own.pem").write_text(f"{KEY}\n{CERTIFICATE}\n")
    text = f"""
        security.protocol=SASL_SSL
        sasl.mechanism=SCRAM-SHA-512
        sasl.jaas.config={SCRAM} required \\
          username="alice" password='a\\\\"b';
        ssl.truststore.type=PEM
        ssl.truststore.location={tmp_path}/ca.pem
        ssl.keystore.type=PEM
        ssl.keystore.location={tmp_path}/own.pem
    """
    found = read(tmp_path, text)
    assert found == Security(True, CERTIFICATE, CERTIFICATE, KEY, "SCRAM-SHA-512", "alice", 'a"b')
    assert found.protocol == "SASL_SSL"


@given(
    st.sampled_from(["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]),
    st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Zl", "Zp"])),
    st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Zl", "Zp"])),
)
def test_what_goes_to_java_is_what_came_in(mechanism: str, username: str, password: str) -> None:
    wanted = Security(True, CERTIFICATE, CERTIFICATE, KEY, mechanism, username, password)
    properties = java_properties(wanted)

    class File:
        @staticmethod
        def read_text(encoding: str) -> str:
            return format_properties(properties)

    assert client_of_file(File()) == (wanted, None)  # type: ignore[arg-type]  # a file without a disk


LOGIN = f'sasl.jaas.config={PLAIN} required username="a" password="b";\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ssl.endpoint.identification.algorithm=\n", "ssl.endpoint.identification.algorithm is not understood"),
        ("security.protocol=TLS\n", "security.protocol: 'TLS' is none of PLAINTEXT"),
        ("security.protocol=SSL\nssl.truststore.location=x\n", "ssl.truststore.type: JKS is not read"),
        ("security.protocol=SSL\nssl.keystore.type=PKCS12\n", "ssl.keystore.type: PKCS12 is not read"),
        (
            "security.protocol=SSL\nssl.truststore.type=PEM\nssl.truststore.location=no/such\n",
            "ssl.truststore.location: no/such cannot be read",
        ),
        ("security.protocol=SSL\nssl.keystore.key=x\n", "go together"),
        ("ssl.truststore.certificates=x\n", "ssl.truststore.certificates is for TLS"),
        (LOGIN, "sasl.jaas.config is for SASL"),
        (f"security.protocol=SASL_SSL\nsasl.mechanism=GSSAPI\n{LOGIN}", "sasl.mechanism: 'GSSAPI' is none of PLAIN"),
        (f"security.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-256\n{LOGIN}", "sasl.jaas.config is not of the form"),
        (
            f"security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.jaas.config={PLAIN} required username=a;\n",
            "sasl.jaas.config is not of the form",
        ),
    ],
)
def test_what_is_not_understood_is_refused_by_its_name(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(CommandError, match=r"--command-config: .*client\.properties: ") as refused:
        read(tmp_path, text)
    assert words in str(refused.value)


def test_a_password_is_in_no_message(tmp_path: Path) -> None:
    text = f'security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.jaas.config={PLAIN} required password="secret"\n'
    with pytest.raises(CommandError) as refused:
        read(tmp_path, text)
    assert "secret" not in str(refused.value)
    assert "secret" not in repr(Security(mechanism="PLAIN", username="a", password="secret"))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    file = tmp_path / "none"
    code, said = run("audit", "run", "--bootstrap", "127.0.0.1:1", "--command-config", str(file))
    assert (code, said) == (1, f"error: --command-config: {file} cannot be read: No such file or directory\n")


def test_the_file_is_for_a_kafka_that_is_named() -> None:
    with pytest.raises(CommandError, match="--command-config is for a Kafka that --bootstrap or"):
        find_target(TargetOptions(security=Security(is_tls=True)))


@pytest.mark.parametrize(
    "words",
    [
        ("topics",),
        ("groups",),
        ("acls",),
        ("consume", "--topic", "t"),
        ("produce", "--topic", "t"),
        ("doctor",),
        ("export",),
        ("explain", "quota"),
        ("quota", "recommend"),
        ("audit", "verify"),
        ("top", "--once"),
        ("console",),
    ],
    ids=" ".join,
)
def test_every_command_for_any_kafka_takes_the_file(tmp_path: Path, words: tuple[str, ...]) -> None:
    file = tmp_path / "client.properties"
    file.write_text("bootstrap.servers=127.0.0.1:1\nsecurity.protocol=CARRIER_PIGEON\n")
    code, said = run(*words, "--command-config", str(file))
    assert code != 0
    assert said.startswith(f"error: --command-config: {file}: security.protocol: 'CARRIER_PIGEON' is none of"), said


def test_the_file_may_name_the_kafka_and_the_option_names_another(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text(f"bootstrap.servers=one:1\nsecurity.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n{LOGIN}")
    parser = ArgumentParser()
    add_state_directory(parser)
    add_target(parser)
    for more, bootstrap in ([], "one:1"), (["--bootstrap", "two:2"], "two:2"):
        options = parser.parse_args(["--command-config", str(file), *more])
        target = find_target(target_options(options))
        assert (target.bootstrap, target.security.username) == (bootstrap, "a")
