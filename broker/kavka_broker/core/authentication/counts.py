"""What has become of those who had to say who they are on a listener: by a login, or by a TLS handshake.

Counted as Apache Kafka counts: a listener that speaks SASL counts logins, also where TLS lies below; one that speaks
TLS alone counts handshakes; PLAINTEXT counts nothing. A client that leaves before its login is over has not failed.
"""

from dataclasses import dataclass


@dataclass(slots=True)
class Authentications:
    """The counters of one listener."""

    successful: int = 0
    failed: int = 0
