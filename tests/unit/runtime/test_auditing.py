"""The key of the audit trail: what a file must have, and what is said of one that has it not."""

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from kavka_broker.core.audit.keys import HmacKey
from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.config.definition import ConfigError
from kavka_broker.runtime.auditing import key_of


def config(directory: Path, **settings: str) -> BrokerConfig:
    given = {
        "node.id": "1",
        "process.roles": "broker,controller",
        "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": "127.0.0.1:1",
        "log.dirs": str(directory),
        **settings,
    }
    return BrokerConfig.parse(given)


def test_no_trail_is_kept_without_a_key(tmp_path: Path) -> None:
    assert key_of(config(tmp_path)) is None


def test_a_key_has_no_white_space_around_it(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_bytes(b"k" * 32 + b"\n")
    assert key_of(config(tmp_path, **{"kavka.audit.key.file": str(file)})) == HmacKey(b"k" * 32)


def test_a_short_key_is_refused_without_a_byte_of_it(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_bytes(b"secret")
    with pytest.raises(ConfigError, match="has 6 bytes; a key has 32 or more") as refused:
        key_of(config(tmp_path, **{"kavka.audit.key.file": str(file)}))
    assert "secret" not in str(refused.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        key_of(config(tmp_path, **{"kavka.audit.key.file": str(tmp_path / "none")}))


def test_a_private_key_in_pem_signs_and_a_public_one_is_refused(tmp_path: Path) -> None:
    private = Ed25519PrivateKey.generate()
    file = tmp_path / "key.pem"
    file.write_bytes(private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    key = key_of(config(tmp_path, **{"kavka.audit.key.file": str(file)}))
    assert key is not None
    private.public_key().verify(key.sign(b"h" * 32), b"h" * 32)
    file.write_bytes(private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    with pytest.raises(ConfigError, match="is a public key, which signs nothing; a node takes the private one"):
        key_of(config(tmp_path, **{"kavka.audit.key.file": str(file)}))
