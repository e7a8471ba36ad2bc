"""Names of certificates' subjects are Java's, byte for byte: Kafka's rules, a DENY among them, are about those."""

import asyncio
import json
import ssl
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kavka_broker.core.authentication.distinguished_names import DerError, distinguished_name, subject_of
from tests.support.in_process import running
from tests.support.subjects import certificate, subject, text

NAMES_BY_JAVA: Final = json.loads(Path(__file__).with_name("names_by_java.json").read_text())
"""Subjects in DER, and what `X500Principal.getName()` of a JDK 17 made of them."""


@pytest.mark.parametrize("row", NAMES_BY_JAVA, ids=lambda row: row["what"])
def test_the_name_of_a_subject_is_that_of_java(row: dict[str, str]) -> None:
    assert distinguished_name(bytes.fromhex(row["subject"])) == row["name"]


@pytest.mark.parametrize("has_version", [True, False])
def test_the_subject_of_a_certificate_is_found_with_a_version_and_without(has_version: bool) -> None:
    expected = subject([text("O", "acme")], [text("CN", "client")])
    assert subject_of(certificate(expected, has_version=has_version)) == expected


@pytest.mark.parametrize(
    "broken",
    [
        "",
        "30",
        "3080",
        "300a310830060603550403",  # no value, and cut off
        "300b310930070603550403",
        "300c310a3008060355040301",
        "30053003060100",  # no set
        "3081053103300106",  # a length in two bytes that fits into one
        "300d310b300906035504030c026162ff",  # bytes behind the subject
        "300f310d300b06035504030c01610c0162",  # two values
        "300b31093007060255840c0161",  # a number that is cut off
    ],
)
def test_what_is_no_der_is_refused(broken: str) -> None:
    with pytest.raises(DerError):
        distinguished_name(bytes.fromhex(broken))
    with pytest.raises(DerError):
        subject_of(bytes.fromhex(broken))


@given(st.binary(max_size=60))
def test_no_bytes_end_in_another_error(data: bytes) -> None:
    for read in (distinguished_name, subject_of):
        with suppress(DerError):
            read(data)


@pytest.mark.parametrize(
    ("asked", "user"),
    [
        (
            "/C=DE/serialNumber=42/emailAddress=a@b.c/CN=a=b",
            r"CN=a\=b,1.2.840.113549.1.9.1=#16056140622e63,2.5.4.5=#13023432,C=DE",
        ),
        ("/O=A, B/OU=streams+UID=7/CN=#1 ", r"CN=\#1\ ,OU=streams+UID=7,O=A\, B"),
        ("/", ""),
    ],
)
def test_a_client_is_the_user_that_java_would_name(asked: str, user: str, tmp_path: Path) -> None:
    words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout a.key -out a.crt -multivalue-rdn"
    subprocess.run(["openssl", *words.split(), "-subj", asked], cwd=tmp_path, check=True, capture_output=True)
    (tmp_path / "a.pem").write_text((tmp_path / "a.key").read_text() + (tmp_path / "a.crt").read_text())
    settings = {
        "listeners": "TLS://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
        "listener.security.protocol.map": "TLS:SSL,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "TLS",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(tmp_path / "a.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(tmp_path / "a.crt"),
        "ssl.client.auth": "required",
    }
    context = ssl.create_default_context(cafile=str(tmp_path / "a.crt"))
    context.check_hostname = False
    context.load_cert_chain(tmp_path / "a.pem")

    async def scenario() -> None:
        async with running(tmp_path / "data", settings) as inside:
            port = inside.server.advertised[0].port
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
            writer.write(bytes.fromhex("0000000a0012000000000007ffff"))
            assert await reader.read(4)
            mine = writer.get_extra_info("sockname")[1]
            users = [
                each.peer.user
                for listener in inside.server.addresses
                for each in listener.connections
                if each.peer.port == mine
            ]
            assert users == [user]
            writer.close()

    asyncio.run(scenario())
