"""Who may connect to a `KafkaCluster`, what is encrypted, and who may do what.

A listener says by Kafka's `protocol` whether it speaks TLS and asks for a login; `tls` and `sasl` beside it say how. A
cluster is secured when a listener speaks another protocol than PLAINTEXT, or `authorization` or `tls` is set. Its nodes
then show each other certificates of an authority of the cluster's own, on two listeners that nobody else can use:
CONTROLLER and NODES. What a version that knows none of this reads is a protocol that it refuses, never an open port.
"""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from kavka_operator.api.external import CaSecret, SecretRef
from kavka_operator.api.model import ListOf, Model, Rule, Transition, Unique

PORT_MAX = 65_535
CONTROLLER, NODES = "CONTROLLER", "NODES"
OF_NODES = (CONTROLLER, NODES)
"""Listeners at which nodes talk to each other."""
CONTROLLER_PORT_STEP = 1000
NODES_PORT_STEP = 2000
"""How far above the first listener's port those of the nodes lie, where they are not listed."""

SUPER_USERS_MAX = 64
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
PLAINTEXT = PROTOCOLS[0]
Protocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
Mechanism = Literal["SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]
DAYS_MAX = 7300


class Oauthbearer(Model):
    """The authorization server whose tokens are taken (KIP-768)."""

    jwks_endpoint_url: str = Field(
        min_length=8,
        max_length=1024,
        pattern=r"^https?://[^ ,;\"\\]+$",
        description="The page with the server's keys. With http instead of https who stands on the way can put others.",
    )
    expected_issuer: str = Field(
        min_length=1, max_length=1024, pattern=r"^[^\n]*$", description="The issuer that a token has to name."
    )
    expected_audience: str = Field(
        min_length=1,
        max_length=256,
        pattern=r"^[^\n,]*$",
        description="The audience that a token has to be for.",
    )
    sub_claim_name: str = Field(
        default="sub", min_length=1, max_length=128, pattern=r"^[^\n]*$", description="The claim that names the user."
    )
    clock_skew_seconds: int = Field(
        default=30, ge=0, le=3600, description="How far the clocks of the server and of brokers may differ."
    )


class ListenerSasl(Model):
    """Logins of clients on a listener."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="has(self.oauthbearer) == ('OAUTHBEARER' in self.mechanisms)",
            message="oauthbearer and the mechanism OAUTHBEARER go together; write both, or neither",
            holds=lambda sasl: (sasl.oauthbearer is not None) == ("OAUTHBEARER" in sasl.mechanisms),
            path="oauthbearer",
        ),
    )

    mechanisms: Annotated[ListOf[Mechanism], Field(min_length=1, max_length=3), Unique()] = Field(
        default=("SCRAM-SHA-512",),
        description="How clients show who they are; a client takes one of them.",
    )
    oauthbearer: Oauthbearer | None = Field(
        default=None, description="Whose tokens are taken, for the mechanism OAUTHBEARER."
    )


class ListenerTls(Model):
    """The certificates of a listener."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="(self.clientAuth != 'none') == has(self.clientCaSecret)",
            message="clientAuth and clientCaSecret go together: certificates of clients are judged by who has signed"
            " them; write both, or neither",
            holds=lambda tls: (tls.client_auth != "none") == (tls.client_ca_secret is not None),
            path="clientCaSecret",
        ),
    )

    secret_ref: SecretRef | None = Field(
        default=None,
        description="The certificate that brokers show clients, as cert-manager and kubernetes.io/tls have it: tls.crt"
        " and tls.key. A change is taken over without a restart. Left out: one of the cluster's own authority.",
    )
    client_auth: Literal["none", "requested", "required"] = Field(
        default="none",
        description="Whether clients show a certificate. Where the protocol is SSL its subject is the user.",
    )
    client_ca_secret: CaSecret | None = Field(
        default=None, description="Who has signed the certificates of clients. Each of them is let in."
    )


class Authority(Model):
    """The authority of the cluster's own that signs certificates of nodes."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="self.renewBeforeDays < self.validityDays",
            message="renewBeforeDays has to be less than validityDays",
            holds=lambda authority: authority.renew_before_days < authority.validity_days,
            path="renewBeforeDays",
        ),
    )

    validity_days: int = Field(default=1826, ge=2, le=DAYS_MAX, description="How long its certificate holds.")
    renew_before_days: int = Field(
        default=180,
        ge=1,
        le=DAYS_MAX,
        description="How long before its end there is a new one. Both are trusted from then on; after half of that time"
        " the new one signs. Clients outside have until then to trust it too.",
    )


class NodeCertificates(Model):
    """The certificates of nodes, and of the operator."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="self.renewBeforeDays < self.validityDays",
            message="renewBeforeDays has to be less than validityDays",
            holds=lambda found: found.renew_before_days < found.validity_days,
            path="renewBeforeDays",
        ),
    )

    validity_days: int = Field(default=90, ge=2, le=DAYS_MAX, description="How long a certificate holds.")
    renew_before_days: int = Field(
        default=30, ge=1, le=DAYS_MAX, description="How long before its end there is a new one, without a restart."
    )


class ClusterTls(Model):
    """The certificates by which nodes know each other, and clients the brokers."""

    authority: Authority = Field(
        default_factory=Authority, description="The authority that signs them, whose key the operator keeps."
    )
    certificates: NodeCertificates = Field(
        default_factory=NodeCertificates, description="How long the certificates of nodes hold."
    )


class Authorization(Model):
    """Rights of users, by ACLs in the cluster's metadata (Kafka's StandardAuthorizer)."""

    super_users: Annotated[
        ListOf[Annotated[str, Field(min_length=3, max_length=256, pattern=r"^User:[^;\n]+$")]],
        Field(max_length=SUPER_USERS_MAX),
        Unique(),
    ] = Field(
        default=(),
        description="Users that may do everything, as User:alice. Nodes and the operator are among them anyhow.",
    )
    allow_everyone_if_no_acl_found: bool = Field(
        default=False, description="True: what no ACL is about everybody may do who is let in."
    )


def is_secured(spec: Any) -> bool:
    """Whether nodes show each other certificates."""
    return (
        spec.tls is not None
        or spec.authorization is not None
        or any(listener.protocol != PLAINTEXT for listener in spec.listeners)
    )


def protocols_of(spec: Any) -> list[str]:
    """The protocols that the listeners speak."""
    return [*(listener.protocol for listener in spec.listeners), *(["SSL"] if is_secured(spec) else [])]


def asks_who(spec: Any) -> bool:
    """Whether a listener asks who a client is."""
    return any(
        listener.sasl is not None or (listener.tls is not None and listener.tls.client_auth == "required")
        for listener in spec.listeners
    )


def port_of_nodes(spec: Any) -> int:
    """The port at which brokers of a secured cluster talk to each other."""
    declared = [listener.port for listener in spec.listeners if listener.name == NODES]
    others = [listener.port for listener in spec.listeners if listener.name != CONTROLLER]
    return declared[0] if declared else (others[0] if others else 0) + NODES_PORT_STEP


def _has_port_for_nodes(spec: Any) -> bool:
    """Whether the port of NODES is free, where that is not listed."""
    if not is_secured(spec) or any(listener.name == NODES for listener in spec.listeners):
        return True
    port = port_of_nodes(spec)
    taken = {listener.port for listener in spec.listeners} | ({spec.metrics.port} if spec.metrics.enabled else set())
    return port <= PORT_MAX and port not in taken and spec.listeners[0].name != CONTROLLER


def secured(spec: str) -> str:
    """The CEL expression for whether the nodes of a spec show each other certificates."""
    asks = f"{spec}.listeners.exists(one, one.protocol != 'PLAINTEXT')"
    return f"(has({spec}.tls) || has({spec}.authorization) || {asks})"


LISTENER_RULES = (
    Rule(
        cel="has(self.sasl) == self.protocol.startsWith('SASL_')",
        message="sasl and a protocol that begins with SASL_ go together, as {protocol: SASL_SSL, sasl: {mechanisms:"
        " [SCRAM-SHA-512]}}; write both, or neither",
        holds=lambda listener: (listener.sasl is not None) == listener.protocol.startswith("SASL_"),
        path="sasl",
    ),
    Rule(
        cel="!has(self.tls) || self.protocol.endsWith('SSL')",
        message="tls is for the protocols SSL and SASL_SSL; write one of them, or take out tls",
        holds=lambda listener: listener.tls is None or listener.protocol.endswith("SSL"),
        path="tls",
    ),
    Rule(
        cel="!(self.name in ['CONTROLLER', 'NODES']) || self.protocol == 'PLAINTEXT'",
        message="the protocol of CONTROLLER and NODES follows from the others: SSL in a secured cluster; leave it out",
        holds=lambda listener: listener.name not in OF_NODES or listener.protocol == PLAINTEXT,
        path="protocol",
    ),
)
"""Rules of one listener."""

SPEC_RULES = (
    Rule(
        cel=f"!{secured('self')} || !has(self.audit) || !has(self.audit.analytics)"
        " || has(self.audit.analytics.userSecret)",
        message="runs have nobody to be in a secured cluster; name in audit.analytics.userSecret a Secret with"
        " client.properties, such as that of a KafkaUser",
        holds=lambda spec: not is_secured(spec) or spec.analytics is None or spec.analytics.user_secret is not None,
        path="audit",
    ),
    Rule(
        cel="!has(self.authorization) || self.listeners.exists(one, has(one.sasl)"
        " || has(one.tls) && one.tls.clientAuth == 'required')",
        message="no listener asks who a client is, so that ACLs could be about nobody; give one sasl, or tls with"
        " clientAuth: required",
        holds=lambda spec: spec.authorization is None or asks_who(spec),
        path="authorization",
    ),
    Rule(
        cel=f"!{secured('self')} || self.listeners.exists(one, one.name == 'NODES')"
        " || self.listeners[0].name != 'CONTROLLER' && self.listeners[0].port <= 63535"
        " && self.listeners.all(one, one.port != self.listeners[0].port + 2000)"
        " && (!self.metrics.enabled || self.metrics.port != self.listeners[0].port + 2000)",
        message="there is no port for nodes 2000 above the first listener's; add a listener such as"
        " {name: NODES, port: 9091}",
        holds=_has_port_for_nodes,
        path="listeners",
    ),
    Rule(
        cel=f"!{secured('self')} || self.listeners.all(one, one.name != 'NODES'"
        " || !has(one.service) && !has(one.advertised))",
        message="NODES is for nodes of the cluster alone; take out service and advertised, and add another listener",
        holds=lambda spec: (
            not is_secured(spec)
            or all(
                listener.name != NODES or (listener.service is None and listener.advertised is None)
                for listener in spec.listeners
            )
        ),
        path="listeners",
    ),
    Rule(
        cel=f"!{secured('self')} || self.listeners.exists(one, !(one.name in ['CONTROLLER', 'NODES']))",
        message="has no listener for clients; add one such as {name: CLIENTS, port: 9092, protocol: SSL}",
        holds=lambda spec: not is_secured(spec) or any(listener.name not in OF_NODES for listener in spec.listeners),
        path="listeners",
    ),
)
"""Rules between the listeners and what a spec says of security."""

STAYS_SECURED = Transition(
    cel=f"{secured('self')} == {secured('oldSelf')}",
    message="a cluster stays secured or open: nodes that were restarted could not talk to those that were not; make"
    " another KafkaCluster",
    holds=lambda new, old: is_secured(new) == is_secured(old),
    path="listeners",
)
