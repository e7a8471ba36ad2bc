"""A proxy before a controller that can deliver late what a dead process has sent.

It runs where the controller runs and passes on every byte, until it is told on its control socket:

    hold ADDRESS KEY    hold what comes from there on, from the first request with this API key (or -1: any)
    let ADDRESS         pass on what comes on new connections; what is held stays held
    held                how many bytes are held
    deliver             pass on what was held

A connection whose bytes are held stays open to the controller although its sender is gone, as TCP's own would on a
network that was cut. Each command is a line and is answered with a line.
"""

import asyncio
import contextlib
import socket
import struct
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

REGISTRATION: Final = 62
ANY: Final = -1
PIECE_BYTES: Final = 65536
SIZE_BYTES: Final = 4
LINGER_SECONDS: Final = 2.0
ANSWER_SECONDS_MAX: Final = 10.0


@dataclass(slots=True)
class Proxy:
    """`holding`: sender's address -> the API key from which on its bytes are held."""

    target: tuple[str, int]
    holding: dict[str, int] = field(default_factory=dict)
    held: dict[asyncio.StreamWriter, bytearray] = field(default_factory=dict)

    async def pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection, until one side has closed it."""
        sender = writer.get_extra_info("peername")[0]
        try:
            target_reader, target_writer = await asyncio.open_connection(*self.target)
        except OSError:
            writer.close()
            return
        backward = asyncio.create_task(self._copy(target_reader, writer))
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await self._forward(sender, reader, target_writer)
        if target_writer not in self.held:
            target_writer.close()
            backward.cancel()
        writer.close()

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while piece := await reader.read(PIECE_BYTES):
                writer.write(piece)
                await writer.drain()
        writer.close()

    async def _forward(self, sender: str, reader: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        """Whole requests, so that one may be held back; what is held never goes on by itself."""
        while True:
            size = await reader.readexactly(SIZE_BYTES)
            request = await reader.readexactly(struct.unpack(">i", size)[0])
            key = struct.unpack_from(">h", request)[0]
            if target in self.held or self.holding.get(sender) in (ANY, key):
                self.held.setdefault(target, bytearray()).extend(size + request)
                continue
            target.write(size + request)
            await target.drain()

    async def deliver(self) -> None:
        held, self.held = self.held, {}
        for target, late in held.items():
            with contextlib.suppress(OSError):
                target.write(late)
                await target.drain()
        await asyncio.sleep(LINGER_SECONDS)
        for target in held:
            target.close()

    async def control(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        words = (await reader.readline()).decode().split()
        answer = "done"
        match words:
            case ["hold", sender, key]:
                self.holding[sender] = int(key)
            case ["let", sender]:
                self.holding.pop(sender, None)
            case ["held"]:
                answer = str(sum(map(len, self.held.values())))
            case ["deliver"]:
                await self.deliver()
            case _:
                answer = "what?"
        writer.write(f"{answer}\n".encode())
        await writer.drain()
        writer.close()


def tell(control: Path, command: str) -> str:
    """Say one line to a proxy; its answer. Raises OSError where it does not run."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(ANSWER_SECONDS_MAX)
        connection.connect(str(control))
        connection.sendall(f"{command}\n".encode())
        return connection.makefile().readline().strip()


async def serve(host: str, port: int, target_port: int, control: str) -> None:
    proxy = Proxy((host, target_port))
    server = await asyncio.start_server(proxy.pass_on, host, port)
    controls = await asyncio.start_unix_server(proxy.control, control)
    async with server, controls:
        await asyncio.gather(server.serve_forever(), controls.serve_forever())


if __name__ == "__main__":
    own_host, own_port, behind, path = sys.argv[1:]
    asyncio.run(serve(own_host, int(own_port), int(behind), path))
