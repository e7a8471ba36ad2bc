"""Programs of Kafka Connect as processes: MirrorMaker 2, and a worker that runs connectors."""

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tools.kafka_jars import connect_class_path
from tools.ktool import jvm

MIRROR_MAKER: Final = "org.apache.kafka.connect.mirror.MirrorMaker"
WORKER: Final = "org.apache.kafka.connect.cli.ConnectDistributed"
HEAP: Final = "384M"


@dataclass
class ConnectProgram:
    """A program that is given a file of properties, and writes what it logs to `log`."""

    name: str
    config: Path
    log: Path
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        assert self.process is None
        line = [*jvm(HEAP), "-cp", connect_class_path(), self.name, str(self.config)]
        with self.log.open("ab") as log:
            environment = {**os.environ, "LOG_LEVEL": "INFO"}
            self.process = subprocess.Popen(line, stdout=log, stderr=log, env=environment)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def last_lines(self) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-30:])


def write_properties(path: Path, properties: Mapping[str, object]) -> Path:
    path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    return path
