"""How long a login holds on its connection, and when it may be renewed there (KIP-368).

- A listener with `connections.max.reauth.ms` lets a login hold that long. The client is told in the answer to its last
  token, from version 1 on; one that is not told is held to it as well.
- The end itself closes nothing. The first request behind it does, unless it is a SaslHandshake that renews the login.
- A renewal may begin at any time, also behind the end, but not within a second of the one before it.
- It has to prove the same user, by the same mechanism.
"""

from dataclasses import dataclass
from typing import Final

from kavka_broker.core.authentication.auth_metrics import Authentications
from kavka_broker.core.authentication.sasl import SaslSettings

RENEWAL_MS_MIN: Final = 1000
"""Between the beginnings of two renewals."""


@dataclass(slots=True)
class Session:
    """What a client has proved on its connection. Times are of the monotonic clock."""

    settings: SaslSettings
    counts: Authentications
    mechanism: str
    user: str
    lifetime_ms: int
    ends_ms: float
    renewed_ms: float | None  # when its last renewal began; None before the first
    is_over: bool = False  # a request has come behind its end

    def holds(self, now_ms: float) -> bool:
        """Whether a request that comes now may be served. Once it may not, none behind it may, and that counts once."""
        if not self.is_over and now_ms > self.ends_ms:
            self.is_over = True
            self.counts.sessions_ended += 1
        return not self.is_over

    def begin_renewal(self, now_ms: float) -> bool:
        """Whether a renewal begins with a handshake that comes now."""
        if self.is_over or (self.renewed_ms is not None and now_ms - self.renewed_ms < RENEWAL_MS_MIN):
            return False
        self.renewed_ms = now_ms
        return True
