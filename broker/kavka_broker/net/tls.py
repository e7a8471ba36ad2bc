"""TLS of listeners, with Python's own `ssl`: the context that a listener's settings make, and who a client is by it."""

import ssl
from asyncio import Transport
from dataclasses import dataclass
from typing import Final

from kavka_broker.core.authentication.distinguished_names import DerError, distinguished_name, subject_of
from kavka_broker.core.authentication.principal_mapping import Rule, user_of
from kavka_broker.core.authentication.tls import TlsSettings
from kavka_broker.core.client_names import ANONYMOUS
from kavka_broker.core.config.definition import Secret

HANDSHAKE_SECONDS_MAX: Final = 10
USER_CHARACTERS_MAX: Final = 1_024
"""The longest user that a certificate may name. A subject of an authority is longer than names that users choose."""
VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
CLIENT_AUTH: Final = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}


class TlsError(Exception):
    """A listener cannot speak TLS with what it was given; the message says what, and shows no key."""


def server_context(settings: TlsSettings) -> ssl.SSLContext:
    """The context of a listener. Raises TlsError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = min(VERSIONS[name] for name in settings.protocols)
    context.maximum_version = max(VERSIONS[name] for name in settings.protocols)
    load_key(context, settings.keystore, settings.key_password)
    if settings.client_auth != "none":
        load_certificates(context, settings.truststore, settings.trusted)
    context.verify_mode = CLIENT_AUTH[settings.client_auth]
    return context


def load_key(context: ssl.SSLContext, keystore: str, key_password: Secret | None) -> None:
    """Let a context show the certificates of a PEM file. Raises TlsError."""
    password = key_password.value if key_password is not None else ""
    try:
        # With an empty password an encrypted key is an error; without one Python would ask on the terminal.
        context.load_cert_chain(keystore, password=lambda: password)
    except (OSError, ValueError) as error:
        words = "no PEM file with a private key and its certificates, or another ssl.key.password"
        raise TlsError(f"ssl.keystore.location: {keystore}: {_said(error, words)}") from None


def load_certificates(context: ssl.SSLContext, truststore: str | None, trusted: Secret | None) -> None:
    """Let a context trust the authorities of a PEM file, or of a text. Raises TlsError."""
    try:
        context.load_verify_locations(truststore, cadata=None if trusted is None else trusted.value)
    except (OSError, ValueError) as error:
        name = "ssl.truststore.location" if truststore else "ssl.truststore.certificates"
        raise TlsError(f"{name}: {_said(error, 'no certificates in PEM')}") from None


def _said(error: Exception, words: str) -> str:
    """What is wrong: of a file that cannot be read the system's words, and never its content."""
    return words if isinstance(error, ssl.SSLError | ValueError) else str(getattr(error, "strerror", "") or words)


@dataclass(frozen=True, slots=True)
class Tls:
    """How a listener speaks TLS. Who logs in by SASL is known by that, whatever certificate it has."""

    context: ssl.SSLContext
    rules: tuple[Rule, ...]
    is_by_certificate: bool

    @classmethod
    def of(cls, settings: TlsSettings, *, has_sasl: bool) -> "Tls":
        """From the settings of a listener. Raises TlsError."""
        return cls(server_context(settings), settings.rules, not has_sasl and settings.client_auth != "none")

    def user_of(self, transport: Transport) -> str | None:
        """The user of a connection whose handshake is over; None where no rule is about its certificate, or the name is
        too long.
        """
        found = transport.get_extra_info("ssl_object") if self.is_by_certificate else None
        certificate = found.getpeercert(binary_form=True) if found is not None else None
        if certificate is None:
            return ANONYMOUS
        try:
            user = user_of(distinguished_name(subject_of(certificate)), self.rules)
        except DerError:
            return None
        return None if user is None or len(user) > USER_CHARACTERS_MAX else user
