"""How a Kafka is reached that asks who its clients are: certificates and passwords, as plain values."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Security:
    """Whether a client speaks TLS, and how it says who it is. Certificates and keys are PEM texts.

    Without an `authority` those of the machine are trusted. `is_own` of a cluster whose certificates we draw ourselves.
    Secrets are left out of what is printed.
    """

    is_tls: bool = False
    authority: str | None = None
    certificate: str | None = None
    key: str | None = field(default=None, repr=False)
    mechanism: str | None = None
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    is_own: bool = False

    @property
    def protocol(self) -> str:
        """Kafka's name for the kind of listener that this is for."""
        transport = "SSL" if self.is_tls else "PLAINTEXT"
        return transport if self.mechanism is None else f"SASL_{transport}"


OPEN = Security()
"""A listener that asks nothing."""


def no_passphrase() -> str:
    """Refuse to unlock a private key: otherwise OpenSSL would wait for a person at the terminal. Raises ValueError."""
    raise ValueError("the private key is encrypted; give it without a passphrase")
