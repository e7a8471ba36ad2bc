"""Requests and connections."""

from typing import Final

from kavka_broker.runtime.metric_tables.family import Kind, Row

NETWORK: Final[tuple[Row, ...]] = (
    ("kavka_requests_total", Kind.COUNTER, ("api",), "Requests answered."),
    ("kavka_request_errors_total", Kind.COUNTER, ("api",), "Requests that ended in an error of the whole request."),
    (
        "kavka_request_seconds_total",
        Kind.COUNTER,
        ("api",),
        "Time between the arrival of requests and their answers, waiting included.",
    ),
    (
        "kavka_request_duration_seconds",
        Kind.HISTOGRAM,
        ("api",),
        "The same time of each request, for percentiles; a Fetch that waits for records counts the wait.",
    ),
    ("kavka_connections", Kind.GAUGE, ("listener",), "Open connections."),
    ("kavka_connections_throttled", Kind.GAUGE, ("listener",), "Connections muted because of a quota, now."),
    ("kavka_connections_accepted_total", Kind.COUNTER, ("listener",), "Connections that came in."),
    (
        "kafka_server_socket_server_metrics_connection_accept_rate",
        Kind.GAUGE,
        ("listener", "ip"),
        "Connections a second of a listener, or of an address under connection_creation_rate; one label is empty.",
    ),
    (
        "kafka_server_socket_server_metrics_broker_connection_accept_rate",
        Kind.GAUGE,
        (),
        "Connections a second, as max.connection.creation.rate of the broker measures them.",
    ),
    (
        "kavka_address_connection_rate",
        Kind.GAUGE,
        ("ip",),
        "Connections a second of addresses under connection_creation_rate, of the last to come.",
    ),
    (
        "kavka_connections_refused_total",
        Kind.COUNTER,
        ("listener",),
        "Connections closed by the broker, with a reason.",
    ),
    (
        "kafka_server_socket_server_metrics_successful_authentication_total",
        Kind.COUNTER,
        ("listener",),
        "Logins over SASL, and TLS handshakes on listeners without SASL, that have let a client in.",
    ),
    (
        "kafka_server_socket_server_metrics_failed_authentication_total",
        Kind.COUNTER,
        ("listener",),
        "Those that have failed, and whose connection was closed.",
    ),
    (
        "kafka_server_socket_server_metrics_successful_authentication_no_reauth_total",
        Kind.COUNTER,
        ("listener",),
        "Logins of clients that are not told how long their login holds, as they speak too old versions.",
    ),
    (
        "kafka_server_socket_server_metrics_successful_reauthentication_total",
        Kind.COUNTER,
        ("listener",),
        "Logins that were renewed on their connection.",
    ),
    (
        "kafka_server_socket_server_metrics_failed_reauthentication_total",
        Kind.COUNTER,
        ("listener",),
        "Renewals of logins that have failed, and whose connection was closed.",
    ),
    (
        "kavka_sessions_ended_total",
        Kind.COUNTER,
        ("listener",),
        "Connections closed by a request behind the end of their login (connections.max.reauth.ms).",
    ),
    (
        "kavka_token_keys_age_seconds",
        Kind.GAUGE,
        ("listener",),
        "Time since the keys of OAUTHBEARER tokens were last read, or since the start where they never were.",
    ),
    (
        "kavka_token_keys_refresh_seconds",
        Kind.GAUGE,
        ("listener",),
        "How often these keys are read: sasl.oauthbearer.jwks.endpoint.refresh.ms.",
    ),
    ("kavka_network_received_bytes_total", Kind.COUNTER, ("listener",), "Bytes read from clients."),
    ("kavka_network_sent_bytes_total", Kind.COUNTER, ("listener",), "Bytes written to clients."),
)
