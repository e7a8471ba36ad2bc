"""Share consumers of Apache Kafka, as processes."""

import subprocess
from pathlib import Path

from tools.ktool import command

SECONDS_MAX = 90.0


class Consumers:
    """Processes of kafka-console-share-consumer, each with a file of what it has read."""

    def __init__(self, directory: Path, bootstrap: str, topic: str, group: str) -> None:
        self.directory = directory
        self.line = command(
            "console-share-consumer", "--bootstrap-server", bootstrap, "--topic", topic, "--group", group
        )
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self, *options: str) -> None:
        path = self.directory / f"consumer-{len(self.processes)}.txt"
        with path.open("wb") as out, path.with_suffix(".log").open("wb") as err:
            self.processes.append(subprocess.Popen([*self.line, *options], stdout=out, stderr=err))

    def read(self, number: int) -> list[int]:
        """What a consumer has read so far, without a line that it is just writing."""
        text = (self.directory / f"consumer-{number}.txt").read_text()
        return [int(line) for line in text[: text.rfind("\n") + 1].split()]

    def read_by_all(self) -> list[int]:
        return [value for number in range(len(self.processes)) for value in self.read(number)]

    def wait(self) -> None:
        for process in self.processes:
            process.wait(SECONDS_MAX)

    def leave(self) -> None:
        """End the processes as a user does: their members leave."""
        for process in self.processes:
            process.terminate()
        self.wait()

    def end(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()
