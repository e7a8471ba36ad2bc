"""examples/compose: its commands and its configuration start a broker, in a process instead of a container.

No daemon of containers is asked; that Compose itself takes the file is not shown here.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka import Consumer, Producer

from tests.support.servers import Server, free_port
from tests.tidy.tree import ROOT

FILE = ROOT / "examples" / "compose" / "compose.yaml"


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(FILE.read_text())
    return found


def test_the_broker_waits_until_its_directory_is_formatted(compose: dict[str, Any]) -> None:
    format_, broker = compose["services"]["format"], compose["services"]["broker"]
    assert broker["depends_on"] == {"format": {"condition": "service_completed_successfully"}}
    assert format_["configs"] == broker["configs"] == [{"source": "server", "target": "/etc/kavka/server.properties"}]
    assert format_["volumes"] == broker["volumes"] == ["records:/var/lib/kavka"]
    assert compose["volumes"] == {"records": {}}


def test_its_commands_start_a_broker_that_keeps_its_records(compose: dict[str, Any], tmp_path: Path) -> None:
    host, inside, controller, admin = (free_port() for _ in range(4))
    text: str = compose["configs"]["server"]["content"]
    for port, other in (("9092", host), ("29092", inside), ("9093", controller), ("9644", admin)):
        text = text.replace(f":{port}\n", f":{other}\n").replace(f":{port},", f":{other},")
    text = text.replace("//broker:", "//127.0.0.1:").replace("/var/lib/kavka", str(tmp_path))
    (tmp_path / "server.properties").write_text(text)

    def command(service: str) -> list[str]:
        words: list[str] = compose["services"][service]["command"]
        places = {"/etc/kavka/server.properties": str(tmp_path / "server.properties")}
        return [sys.executable, "-m", "kavka_broker", *(places.get(word, word) for word in words)]

    server = Server(command("broker"), ("127.0.0.1", host), tmp_path)
    for turn in range(2):  # `up` again formats nothing anew
        subprocess.run(command("format"), check=True, capture_output=True)
        server.start()
        try:
            producer = Producer({"bootstrap.servers": f"localhost:{host}"})
            producer.produce("flights", key="AF", value=str(turn))
            assert producer.flush(60) == 0
            reader = Consumer(
                {"bootstrap.servers": f"127.0.0.1:{inside}", "group.id": str(turn), "auto.offset.reset": "earliest"}
            )
            reader.subscribe(["flights"])
            assert [message.value() for message in reader.consume(turn + 1, 60)] == [b"0", b"1"][: turn + 1]
            reader.close()
            health: list[str] = compose["services"]["broker"]["healthcheck"]["test"]
            assert health[0] == "CMD"
            code = health[3].replace("9644", str(admin))
            subprocess.run([sys.executable, *health[2:3], code], check=True)
        finally:
            assert server.stop() == 0
