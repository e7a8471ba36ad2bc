"""How a Kafka is reached that asks who its clients are: certificates and passwords, as plain values."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Origin:
    """The names of fields that a person has to put right where a cluster does not let a client in."""

    login: str
    place: str
    """The place of user name and password."""
    tls: str
    authority: str
    own: str
    pair: str
    """The client's own certificate and key."""


OF_RESOURCE = Origin(
    login="spec.external.sasl",
    place="the Secret",
    tls="spec.external.tls",
    authority="spec.external.tls.caSecret",
    own="spec.external.tls.clientSecret",
    pair="tls.crt and tls.key",
)


@dataclass(frozen=True, slots=True)
class Security:
    """Whether a client speaks TLS, and how it says who it is. Certificates and keys are PEM texts.

    Without an `authority` those of the machine are trusted. `is_own` of a cluster whose certificates we draw ourselves.
    Secrets are left out of what is printed. `origin` is for messages: two of the same content are equal.
    """

    is_tls: bool = False
    authority: str | None = None
    certificate: str | None = None
    key: str | None = field(default=None, repr=False)
    mechanism: str | None = None
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    is_own: bool = False
    origin: Origin = field(default=OF_RESOURCE, repr=False, compare=False)

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
