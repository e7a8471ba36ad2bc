"""An S3 server as a process: versitygw, which checks signatures and keeps objects as files. By TLS where it is told."""

import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.secured import Certificates
from tests.support.servers import free_port
from tests.support.waiting import until_outside
from tools.s3.program import SERVER

ACCESS_KEY, SECRET_KEY = "kavka-tests", "a secret, that no output has"
REGION = "eu-test-1"
STOP_SECONDS_MAX = 60


@dataclass(frozen=True, slots=True)
class S3Server:
    """A server that runs. A bucket is a folder of `directory`."""

    port: int
    directory: Path
    address: str = "127.0.0.1"
    scheme: str = "http"

    @property
    def endpoint(self) -> str:
        return self.endpoint_at(self.address)

    def endpoint_at(self, host: str) -> str:
        """The endpoint by another name of the host."""
        return f"{self.scheme}://{host}:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        """What a program is told to be let in."""
        keys = {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY}
        return {**keys, "AWS_ENDPOINT_URL_S3": self.endpoint, "AWS_REGION": REGION}

    def bucket(self, name: str) -> Path:
        """Make a bucket; its folder."""
        (self.directory / name).mkdir()
        return self.directory / name


@contextmanager
def s3_server(directory: Path, *, address: str = "127.0.0.1", signed: Certificates | None = None) -> Iterator[S3Server]:
    """A server, which is ended by its pid. It speaks TLS with a certificate of these alone."""
    found = S3Server(free_port(), directory / "objects", address, "http" if signed is None else "https")
    found.directory.mkdir(parents=True)
    line = [str(SERVER.path()), "--region", REGION]
    if signed is not None:
        line += ["--cert", str(signed.directory / "broker.crt"), "--key", str(signed.directory / "broker.key")]
    keys = {"ROOT_ACCESS_KEY": ACCESS_KEY, "ROOT_SECRET_KEY": SECRET_KEY}
    with (directory / "s3.log").open("w") as log:
        process = subprocess.Popen(
            [*line, "--port", f"{address}:{found.port}", "posix", str(found.directory)],
            env={**os.environ, **keys},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        until_outside(lambda: _answers(process, found))
        yield found
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(STOP_SECONDS_MAX)


def _answers(process: subprocess.Popen[bytes], server: S3Server) -> bool:
    assert process.poll() is None, "the S3 server has ended; see s3.log"
    with socket.socket() as found:
        return found.connect_ex((server.address, server.port)) == 0
