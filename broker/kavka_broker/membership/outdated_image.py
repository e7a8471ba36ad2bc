"""Whether this broker's image is known to be outdated, so that it names leaders that are none any more.

A node has its metadata log beside its data, unless `metadata.log.dir` says otherwise. Where that disk is full the
broker steps aside (`lifecycle`), others lead, and it cannot note that: the answer to a heartbeat alone tells it.
"""

from collections.abc import Callable
from typing import Final

from kavka_broker.logs import get

log = get("membership")

OUTDATED: Final = "this broker is fenced, and its metadata log has no room to note who leads instead"


class OutdatedImage:
    """Compares what the controller says of this broker with what its image has. `is_known` until they agree."""

    def __init__(self) -> None:
        self.is_known = False
        self.has_room: Callable[[], bool] = _always  # whether the metadata log takes what comes
        self.on_known: Callable[[], None] = _nothing

    def told(self, *, is_fenced: bool, is_unfenced: bool) -> None:
        """The controller says whether the broker `is_fenced`, and the image whether it `is_unfenced`."""
        was_known = self.is_known
        self.is_known = is_fenced and is_unfenced and not self.has_room()
        if self.is_known and not was_known:
            log.warning("broker.outdated", reason=f"{OUTDATED}; clients are sent to other brokers")
            self.on_known()

    def obstacle(self) -> str | None:
        """Return why this broker is not ready."""
        return OUTDATED if self.is_known else None

    def replayed(self, *, is_unfenced: bool) -> None:
        """The image has replayed records, and has the broker so now."""
        self.is_known = self.is_known and is_unfenced


def _always() -> bool:
    return True


def _nothing() -> None:
    pass
