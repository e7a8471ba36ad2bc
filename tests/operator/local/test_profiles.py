"""Commands by a profile, on a broker that asks for a login: nothing of it is typed again."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from kavka_cli.app import main
from tests.support.commands import run_here
from tests.support.servers import free_port, start_server

PASSWORD = 'b "o;=b'
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
ESCAPED = PASSWORD.replace('"', '\\"')
SECONDS_MAX = 60.0


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """Where clients log in to a broker."""
    plain, clients, controller = free_port(), free_port(), free_port()
    settings = {
        "listeners": f"PLAINTEXT://127.0.0.1:{plain},CLIENTS://127.0.0.1:{clients},CONTROLLER://127.0.0.1:{controller}",
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{controller}",
        "listener.security.protocol.map": "CLIENTS:SASL_PLAINTEXT,PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        # A properties file takes a backslash for itself.
        "listener.name.clients.plain.sasl.jaas.config": f'{MODULE} required user_alice="{ESCAPED}";'.replace(
            "\\", "\\\\"
        ),
    }
    server = start_server(tmp_path / "broker", settings)
    yield f"127.0.0.1:{clients}"
    server.kill()


def login(password: str) -> str:
    """The file of properties of a client."""
    config = f'{MODULE} required username="alice" password="{password}";'.replace("\\", "\\\\")
    return f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config={config}\n"


def test_commands_take_the_profile_that_is_used(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAVKA_CONFIG_DIR", str(tmp_path / "settings"))
    for name in ("KAVKA_PROFILE", "KAVKA_STATE_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    file, said = tmp_path / "client.properties", list[str]()

    def kavka(*words: str, code: int = 0) -> str:
        found, text = run_here(main, *words)
        said.append(text)
        assert found == code, text
        return text

    file.write_text(login(ESCAPED))
    kavka("profile", "create", "prod", "--bootstrap", address, "--command-config", str(file), "--use")
    file.write_text(login("wrong"))
    kavka("profile", "create", "stale", "--bootstrap", address, "--command-config", str(file))
    file.unlink()
    access: dict[str, Any] = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "log_level": 0}
    producer = Producer({"bootstrap.servers": address, **access, "sasl.username": "alice", "sasl.password": PASSWORD})
    producer.produce("orders", b"one", b"k")
    assert producer.flush(SECONDS_MAX) == 0
    line, _, rest = kavka("consume", "--topic", "orders").partition("\n")
    assert (json.loads(line)["value"], rest) == ("one", f'profile "prod": {address}\n')
    assert kavka("topics", "--profile", "prod", "-o", "name") == "orders\n"
    assert kavka("describe", "topic", "orders", "--profile", "prod").startswith("topic: orders\n")
    assert 'profile "stale": sasl.jaas.config' in kavka("topics", "--profile", "stale", code=1)
    kavka("profile", "show")
    kavka("profile", "list")
    assert "alice" in said[-1]
    assert not any(ESCAPED in text or PASSWORD in text or "wrong" in text for text in said)
    kavka("profile", "clear")
    assert "no cluster runs" in kavka("topics", code=1)
