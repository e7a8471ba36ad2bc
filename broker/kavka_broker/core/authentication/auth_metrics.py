"""What has become of those who had to say who they are on a listener: by a login, or by a TLS handshake.

Counted as Apache Kafka counts: a listener that speaks SASL counts logins, also where TLS lies below; one that speaks
TLS alone counts handshakes; PLAINTEXT counts nothing. A client that leaves before its login is over has not failed.
"""

from dataclasses import dataclass


@dataclass(slots=True)
class Authentications:
    """The counters of one listener."""

    successful: int = 0
    successful_untold: int = 0  # of these, clients that are not told how long their login holds
    failed: int = 0
    renewed: int = 0  # logins that were proved again on their connection
    not_renewed: int = 0  # renewals that have failed
    sessions_ended: int = 0  # connections closed as their login did not hold any more
