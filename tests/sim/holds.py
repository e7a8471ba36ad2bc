"""Connections of which nothing arrives any more, until it is let go or lost."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.sim.network import Pipe

ANSWERS = -1  # instead of requests
API_KEY_AT = slice(4, 6)

Piece = bytes | str


@dataclass(slots=True)
class Hold:
    """Connections whose packets are on a long way, so that they may arrive after their sender's end."""

    api_key: int  # of requests, or ANSWERS
    peer: str = ""  # to this host; else to any
    but_to_port: int = 0
    only_to_port: int = 0  # else to any
    pipes: "list[Pipe]" = field(default_factory=list)

    def takes(self, pipe: "Pipe", piece: Piece) -> bool:
        """Whether this is a request of the kind."""
        if not isinstance(piece, bytes) or self.peer not in ("", pipe.target.process.host):
            return False
        if self.api_key == ANSWERS:
            return pipe.source.is_accepting
        if pipe.source.is_accepting:
            return False
        port = pipe.source.get_extra_info("peername")[1]
        if port == self.but_to_port or self.only_to_port not in (0, port):
            return False
        return int.from_bytes(piece[API_KEY_AT], "big") == self.api_key
