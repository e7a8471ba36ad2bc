"""The listeners of a cluster and what they ask, as settings of its nodes; the same wherever nodes run. Pure.

In a secured cluster brokers talk to each other on NODES and with controllers on CONTROLLER. Both take only certificates
that the cluster's authority has signed, and it signs for nodes and the operator alone. A KafkaUser or a ClientQuota
that names one of their two users is refused, so that no login is given their rights.
"""

from collections.abc import Mapping

from kavka_operator.api.cluster import KafkaCluster, Listener
from kavka_operator.api.quota import INTERNAL_USERS
from kavka_operator.api.security import CONTROLLER, NODES, OF_NODES, PLAINTEXT, Oauthbearer, port_of_nodes

NODE_SUBJECT, OPERATOR_SUBJECT = "node", "operator"
ORGANIZATION = "kavka.dev"
AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
MODULES = "org.apache.kafka.common.security"
TOKEN_HANDLER = f"{MODULES}.oauthbearer.OAuthBearerValidatorCallbackHandler"

NODE_FILE, AUTHORITIES_FILE = "node.pem", "authorities.pem"
"""A node's key with its certificate, and who is trusted, in the directory of its certificates."""


def client_listeners(cluster: KafkaCluster) -> list[Listener]:
    """The listeners for clients: those that are not the nodes' own."""
    own = OF_NODES if cluster.spec.is_secured else (CONTROLLER,)
    return [listener for listener in cluster.spec.listeners if listener.name not in own]


def among_nodes(cluster: KafkaCluster) -> Listener:
    """The listener on which brokers talk to each other: NODES, otherwise the first that leads nowhere else."""
    declared = [listener for listener in cluster.spec.listeners if listener.name == NODES]
    if cluster.spec.is_secured:
        return declared[0] if declared else Listener(name=NODES, port=port_of_nodes(cluster.spec))
    clients = client_listeners(cluster)
    inside = (listener for listener in clients if listener.advertised is None and listener.service is None)
    return next(inside, clients[0])


def protocols(cluster: KafkaCluster) -> dict[str, str]:
    """The protocol of each listener, by its name."""
    declared: dict[str, str] = {listener.name: listener.protocol for listener in cluster.spec.listeners}
    own = dict.fromkeys((NODES, CONTROLLER), "SSL") if cluster.spec.is_secured else {CONTROLLER: PLAINTEXT}
    return declared | own


def super_users(cluster: KafkaCluster) -> list[str]:
    """The users that may do everything: nodes, the operator, and those that the resource names."""
    assert cluster.spec.authorization is not None, "asked for where ACLs say who may do what"
    return [*(f"User:{name}" for name in INTERNAL_USERS), *cluster.spec.authorization.super_users]


def own_certificate(listener: str) -> str:
    """The file with the certificate of a listener that has one of its own."""
    return f"listener-{listener.lower()}.pem"


def authorities_of_clients(listener: str) -> str:
    """The file with those that have signed the certificates of a listener's clients."""
    return f"listener-{listener.lower()}-clients.pem"


def secured_properties(cluster: KafkaCluster, directory: str) -> dict[str, str]:
    """The settings of a secured cluster; none otherwise. `directory` is where a node finds its certificates."""
    if not cluster.spec.is_secured:
        return {}
    found = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": f"{directory}/{NODE_FILE}",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": f"{directory}/{AUTHORITIES_FILE}",
    }
    for name in OF_NODES:
        found |= _of_listener(name, {"ssl.client.auth": "required", "ssl.principal.mapping.rules": "DEFAULT"})
    for listener in client_listeners(cluster):
        found |= _of_listener(listener.name, {**_of_tls(listener, directory), **_of_sasl(listener)})
    return found | _authorizer(cluster)


def _of_listener(name: str, settings: Mapping[str, str]) -> dict[str, str]:
    return {f"listener.name.{name.lower()}.{key}": value for key, value in settings.items()}


def _of_tls(listener: Listener, directory: str) -> dict[str, str]:
    """The certificates of a listener, where they are not those that its node has."""
    if listener.tls is None:
        return {}
    own = {"ssl.keystore.location": f"{directory}/{own_certificate(listener.name)}"}
    clients = {
        "ssl.client.auth": listener.tls.client_auth,
        "ssl.truststore.location": f"{directory}/{authorities_of_clients(listener.name)}",
    }
    return {
        **(own if listener.tls.secret_ref is not None else {}),
        **(clients if listener.tls.client_ca_secret is not None else {}),
    }


def _of_sasl(listener: Listener) -> dict[str, str]:
    """The mechanisms of a listener. Users of SCRAM stand in the metadata of the cluster, so no password is here."""
    if listener.sasl is None:
        return {}
    found = {"sasl.enabled.mechanisms": ",".join(listener.sasl.mechanisms)}
    for mechanism in listener.sasl.mechanisms:
        if mechanism != "OAUTHBEARER":
            found[f"{mechanism.lower()}.sasl.jaas.config"] = f"{MODULES}.scram.ScramLoginModule required;"
    return found | (_of_tokens(listener.sasl.oauthbearer) if listener.sasl.oauthbearer is not None else {})


def _of_tokens(server: Oauthbearer) -> dict[str, str]:
    return {
        "oauthbearer.sasl.jaas.config": f"{MODULES}.oauthbearer.OAuthBearerLoginModule required;",
        "oauthbearer.sasl.server.callback.handler.class": TOKEN_HANDLER,
        "oauthbearer.sasl.oauthbearer.jwks.endpoint.url": server.jwks_endpoint_url,
        "oauthbearer.sasl.oauthbearer.expected.issuer": server.expected_issuer,
        "oauthbearer.sasl.oauthbearer.expected.audience": server.expected_audience,
        "oauthbearer.sasl.oauthbearer.sub.claim.name": server.sub_claim_name,
        "oauthbearer.sasl.oauthbearer.clock.skew.seconds": str(server.clock_skew_seconds),
    }


def _authorizer(cluster: KafkaCluster) -> dict[str, str]:
    if cluster.spec.authorization is None:
        return {}
    is_open = cluster.spec.authorization.allow_everyone_if_no_acl_found
    return {
        "authorizer.class.name": AUTHORIZER,
        "super.users": ";".join(super_users(cluster)),
        **({"allow.everyone.if.no.acl.found": "true"} if is_open else {}),
    }


def wanted_secrets(cluster: KafkaCluster) -> dict[str, tuple[str, tuple[str, ...]]]:
    """The Secrets that listeners name, by the file that a node needs of them: its name, and the keys to be joined."""
    found: dict[str, tuple[str, tuple[str, ...]]] = {}
    for listener in client_listeners(cluster):
        if listener.tls is not None and listener.tls.secret_ref is not None:
            found[own_certificate(listener.name)] = listener.tls.secret_ref.name, ("tls.key", "tls.crt")
        if listener.tls is not None and listener.tls.client_ca_secret is not None:
            secret = listener.tls.client_ca_secret
            found[authorities_of_clients(listener.name)] = secret.name, (secret.key,)
    return found
