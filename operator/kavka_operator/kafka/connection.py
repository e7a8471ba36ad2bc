"""The way into a Kafka: the library's client with certificates and passwords, and why a cluster did not let it in.

kafka-python tries again until its time is over and then only says so. A wrong password or certificate does not become
right by trying, and each try may count against the user, so the first such answer ends it here, with its words.
"""

import ssl
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import kafka.errors
from kafka import KafkaConsumer, KafkaProducer
from kafka.admin import KafkaAdminClient
from kafka.net.compat import KafkaNetClient
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector

from kavka_operator.domain.access import Origin, Security
from kavka_operator.kafka.admin import AdminError, BarredError
from kavka_operator.kafka.client_certificate import present

REQUEST_TIMEOUT_MS = 15_000
RECONNECT_BACKOFF_MS_MAX = 500
POLL_RECORDS_MAX = 5_000
CLIENT_ID = "kavka-operator"
DENIALS = (kafka.errors.SaslAuthenticationFailedError, kafka.errors.UnsupportedSaslMechanismError)


@dataclass(frozen=True, slots=True)
class Patience:
    """The time that a Kafka may take to let the operator in."""

    bootstrap_ms: int = 10_000
    handshake_ms: int = 10_000  # for each step of TLS's


PATIENCE = Patience()


def connected(bootstrap_servers: str, security: Security, patience: Patience = PATIENCE) -> KafkaAdminClient:
    """The library's admin client, once a broker has answered. Raises AdminError, and BarredError where trying again is
    of no use.
    """
    made: list[_Net] = []

    def net(**configs: Any) -> _Net:
        made.append(_Net(patience.handshake_ms, **configs))
        return made[-1]

    try:
        return KafkaAdminClient(
            bootstrap_servers=bootstrap_servers.split(","),
            client_id=CLIENT_ID,
            request_timeout_ms=REQUEST_TIMEOUT_MS,
            bootstrap_timeout_ms=patience.bootstrap_ms,
            reconnect_backoff_max_ms=RECONNECT_BACKOFF_MS_MAX,
            kafka_client=net,
            **_options(security),
        )
    except (kafka.errors.KafkaError, OSError) as error:
        last = made[0].manager.last if made else None
        for client in made:
            client.end()
        raise told_in_words(bootstrap_servers, security, error if last is None else last) from error


def consumer(bootstrap_servers: str, security: Security, fetch_bytes_max: int | None = None) -> KafkaConsumer:
    """The library's consumer of what is committed, without a group: one whose offset is gone is told so, as the library
    would go on at the end. `fetch_bytes_max` bounds the answer of a broker. Raises AdminError.
    """
    bounds = {}
    if fetch_bytes_max is not None:
        bounds = dict.fromkeys(("fetch_max_bytes", "max_partition_fetch_bytes"), fetch_bytes_max)
    try:
        return KafkaConsumer(
            bootstrap_servers=bootstrap_servers.split(","),
            client_id=CLIENT_ID,
            isolation_level="read_committed",
            auto_offset_reset="none",
            max_poll_records=POLL_RECORDS_MAX,
            **bounds,
            **_options(security),
        )
    except (kafka.errors.KafkaError, OSError) as error:
        raise told_in_words(bootstrap_servers, security, error) from error


def producer(bootstrap_servers: str, security: Security) -> KafkaProducer:
    """The library's producer, idempotent and with acks=all. Raises AdminError."""
    try:
        return KafkaProducer(
            bootstrap_servers=bootstrap_servers.split(","), client_id=CLIENT_ID, linger_ms=5, **_options(security)
        )
    except (kafka.errors.KafkaError, OSError) as error:
        raise told_in_words(bootstrap_servers, security, error) from error


class _Manager(KafkaConnectionManager):  # type: ignore[misc]  # the library has no types
    """Remembers why a broker could not be reached, and gives up where a retry cannot help."""

    last: BaseException | None = None

    async def _build_transport(self, node: Any, timeout_at: Any = None) -> Any:
        """Make a connection that hears a broker out: the library drops what came last before the end of a connection,
        which is where a broker says that it refuses a user.
        """
        transport = await super()._build_transport(node, timeout_at)
        receive = transport._sock_recv

        def heard() -> tuple[bytes, Exception | None]:
            data, error = receive()
            return data, None if data else error  # the end is found again by the next read

        transport._sock_recv = heard
        return transport

    def update_backoff(self, node_id: Any) -> Any:
        """Note the error that is being handled. Raises it where trying again is of no use."""
        error = sys.exc_info()[1]
        if error is not None and (self.last is None or "socket disconnected" not in str(error)):
            self.last = error
        is_beginning = self._bootstrap_future is not None and not self._bootstrap_future.is_done
        if error is not None and is_beginning and (isinstance(error, DENIALS) or _is_final(_ssl_error(error))):
            raise error
        return super().update_backoff(node_id)


class _Selector(NetworkSelector):  # type: ignore[misc]  # the library has no types
    """Waits no longer for a step of a TLS handshake than for an answer; the library waits for it without end."""

    def __init__(self, handshake_ms: int, **configs: Any) -> None:
        super().__init__(**configs)
        self._handshake_ms = handshake_ms

    def wait_read(self, fileobj: Any, timeout_at: float | None = None) -> Any:
        """Wait for data of a socket."""
        if timeout_at is None and isinstance(fileobj, ssl.SSLSocket) and fileobj.version() is None:
            timeout_at = time.monotonic() + self._handshake_ms / 1000
        return super().wait_read(fileobj, timeout_at)


class _Net(KafkaNetClient):  # type: ignore[misc]  # the library has no types
    """The library's client with our manager of connections."""

    def __init__(self, handshake_ms: int, **configs: Any) -> None:
        net = _Selector(handshake_ms, **configs)
        self.manager = _Manager(net, **configs)
        super().__init__(net, self.manager, **configs)

    def end(self) -> None:
        """Close the connections and end the thread, which a client that is never made leaves behind."""
        with suppress(Exception):
            self.close()
        with suppress(Exception):
            self._net.stop()


def _options(security: Security) -> dict[str, Any]:
    """The library's options for certificates and passwords. Raises BarredError for an invalid certificate."""
    options: dict[str, Any] = {"security_protocol": security.protocol}
    if security.is_tls:
        options["ssl_context"] = context_of(security)
    if security.mechanism is not None:
        options["sasl_mechanism"] = security.mechanism
        options["sasl_plain_username"], options["sasl_plain_password"] = security.username, security.password
    return options


def context_of(security: Security) -> ssl.SSLContext:
    """The TLS context with the trusted and own certificates. Raises BarredError."""
    try:
        context = ssl.create_default_context(cadata=security.authority)
    except (ssl.SSLError, ValueError) as error:
        raise BarredError("BadSecret", f"{security.origin.authority}: no certificate as PEM: {error}") from error
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if security.certificate is not None:
        try:
            present(context, security.certificate, security.key or "")
        except (ssl.SSLError, ValueError) as error:
            words = f"{security.origin.own}: {security.origin.pair} are no certificate and its key: {error}"
            raise BarredError("BadSecret", words) from error
    return context


def told_in_words(bootstrap_servers: str, security: Security, error: BaseException) -> AdminError:
    """The error of a connection that was not made, in words that say what to put right."""
    origin = security.origin
    if isinstance(error, DENIALS):
        words = f"Kafka refuses user {security.username!r} by {security.mechanism}; put the right username and password"
        return BarredError("NotAuthenticated", f"{origin.login}: {words} into {origin.place}: {error}")
    if _is_final(refusal := _ssl_error(error)) and refusal is not None:
        if security.is_own:
            words = f"a node does not take our certificate, or we do not take its own: {refusal}"
            return AdminError(f"{words}; it takes over what is written for it within a minute", retriable=True)
        return BarredError("NotTrusted", f"{origin.tls}: {_of_tls(refusal, origin)}: {refusal}")
    hint = ""
    if isinstance(error, kafka.errors.InvalidReceiveError):
        hint = f"; it speaks something else there, TLS perhaps: see {origin.tls}"
    elif _ssl_error(error) is not None or (security.is_tls and isinstance(error.__context__, ConnectionResetError)):
        # Who takes a handshake for a request closes with the rest of it unread, and that may arrive as either.
        hint = f"; it does not speak TLS there: see {origin.tls}"
    return AdminError(f"could not connect to {bootstrap_servers}: {error}{hint}", retriable=True)


def _of_tls(error: ssl.SSLError, origin: Origin) -> str:
    """The advice on a TLS error."""
    words = str(error)
    if "CERTIFICATE_VERIFY_FAILED" not in words:
        return f"the broker does not take our certificate; give it one that it trusts by {origin.own}"
    if "mismatch" in words:
        return "the broker's certificate is of another name than bootstrapServers has; write a name that it has"
    return f"nobody whom we trust has signed the broker's certificate; give who has by {origin.authority}"


def _is_final(error: ssl.SSLError | None) -> bool:
    """Whether certificates were judged. Anything else may come of a broker that is on its way down."""
    return error is not None and any(word in str(error) for word in ("CERTIFICATE_VERIFY_FAILED", "ALERT"))


def _ssl_error(error: BaseException | None) -> ssl.SSLError | None:
    """The error of TLS that another error stands for; None where there is none."""
    if error is None:
        return None
    for candidate in (error, error.__cause__, error.__context__, *error.args):
        if isinstance(candidate, ssl.SSLError):
            return candidate
    return None
