"""`spec.external`: a Kafka that somebody else runs, of which only topics, quotas and users are looked after.

Nothing of its nodes is rendered, started or altered. What it asks of clients stands in Secrets, by name.
"""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from kavka_operator.api.model import Model, Rule

ADDRESS_PATTERN = r"^[a-zA-Z0-9._-]+:[0-9]{1,5}(,[a-zA-Z0-9._-]+:[0-9]{1,5})*$"
DNS_NAME_PATTERN = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"
KEY_PATTERN = r"^[-._a-zA-Z0-9]+$"

SecretName = Annotated[str, Field(min_length=1, max_length=253, pattern=DNS_NAME_PATTERN)]
Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]


class CaSecret(Model):
    """A Secret with the certificates of authorities."""

    name: SecretName = Field(description="The name of the Secret, in the namespace of the KafkaCluster.")
    key: str = Field(
        default="ca.crt",
        min_length=1,
        max_length=253,
        pattern=KEY_PATTERN,
        description="The key with the certificates, as PEM.",
    )


class SecretRef(Model):
    """A Secret with keys that are known."""

    name: SecretName = Field(description="The name of the Secret, in the namespace of the KafkaCluster.")


class ExternalTls(Model):
    """The certificates by which the brokers are known, and the operator to them. Names of hosts are always compared."""

    ca_secret: CaSecret | None = Field(
        default=None, description="Who has signed the brokers' certificates. Left out: whom the machine trusts."
    )
    client_secret: SecretRef | None = Field(
        default=None, description="The operator's own certificate, as kubernetes.io/tls: tls.crt and tls.key."
    )


class ExternalSasl(Model):
    """The user that the operator is."""

    mechanism: Mechanism = Field(description="How the password is shown to the brokers.")
    secret_ref: SecretRef = Field(description="A Secret with the keys username and password.")
    allow_plaintext: bool = Field(
        default=False,
        description="Whether PLAIN may go without TLS: then whoever reads the traffic has the password.",
    )


class External(Model):
    """A Kafka that somebody else runs."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="!has(self.sasl) || self.sasl.mechanism != 'PLAIN' || has(self.tls)"
            " || has(self.sasl.allowPlaintext) && self.sasl.allowPlaintext",
            message="PLAIN sends the password as it is; write tls, another mechanism, or allowPlaintext: true in sasl",
            holds=lambda external: (
                external.sasl is None
                or external.sasl.mechanism != "PLAIN"
                or external.tls is not None
                or external.sasl.allow_plaintext
            ),
            path="sasl",
        ),
    )

    bootstrap_servers: str = Field(
        min_length=3,
        max_length=4096,
        pattern=ADDRESS_PATTERN,
        description="HOST:PORT of some of its brokers, with commas between them.",
    )
    tls: ExternalTls | None = Field(
        default=None, description="What is needed for TLS; {} trusts whom the machine does."
    )
    sasl: ExternalSasl | None = Field(default=None, description="What is needed where clients have a name.")
