"""What a listener asks of clients that log in over SASL."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kavka_broker.core.authentication.token_claims import TokenJudge


@dataclass(frozen=True, slots=True)
class SaslSettings:
    """`plain_users` are passwords by user, which nothing shows. `session_ms_max` is how long a login holds, by
    mechanism: as long as its connection where that is 0 or missing.
    """

    mechanisms: tuple[str, ...]
    plain_users: Mapping[str, str] = field(default_factory=dict, repr=False)
    receive_bytes_max: int = 524_288
    failure_delay_ms: int = 100
    session_ms_max: Mapping[str, int] = field(default_factory=dict)
    tokens: TokenJudge | None = None  # of OAUTHBEARER
