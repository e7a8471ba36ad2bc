"""The broker configs of Apache Kafka 4.3 for TLS, SASL, delegation tokens and authorization."""

from typing import Final

from kavka_broker.core.config.definition import (
    ConfigType,
    Definition,
    Importance,
    Mode,
    OneOf,
    Range,
    by_name,
)

BOOLEAN: Final = ConfigType.BOOLEAN
STRING: Final = ConfigType.STRING
INT: Final = ConfigType.INT
SHORT: Final = ConfigType.SHORT
LONG: Final = ConfigType.LONG
DOUBLE: Final = ConfigType.DOUBLE
LIST: Final = ConfigType.LIST
CLASS: Final = ConfigType.CLASS
PASSWORD: Final = ConfigType.PASSWORD
HIGH: Final = Importance.HIGH
MEDIUM: Final = Importance.MEDIUM
LOW: Final = Importance.LOW
PER_BROKER: Final = Mode.PER_BROKER

SECURITY_KEYS: Final = by_name(
    (
        Definition("authorizer.class.name", STRING, "", LOW, served=True),
        Definition("connection.failed.authentication.delay.ms", INT, 100, LOW, Range(0), served=True),
        Definition("connections.max.reauth.ms", LONG, 0, MEDIUM, served=True),
        Definition("delegation.token.expiry.check.interval.ms", LONG, 3_600_000, LOW, Range(1), served=True),
        Definition("delegation.token.expiry.time.ms", LONG, 86_400_000, MEDIUM, Range(1), served=True),
        Definition("delegation.token.max.lifetime.ms", LONG, 604_800_000, MEDIUM, Range(1), served=True),
        Definition("delegation.token.secret.key", PASSWORD, None, MEDIUM, served=True),
        Definition(
            "principal.builder.class",
            CLASS,
            "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",
            MEDIUM,
            mode=PER_BROKER,
        ),
        Definition("sasl.client.callback.handler.class", CLASS, None, MEDIUM),
        Definition("sasl.enabled.mechanisms", LIST, ("GSSAPI",), MEDIUM, mode=PER_BROKER, served=True),
        Definition("sasl.jaas.config", PASSWORD, None, MEDIUM, mode=PER_BROKER),
        Definition("sasl.kerberos.kinit.cmd", STRING, "/usr/bin/kinit", MEDIUM, mode=PER_BROKER),
        Definition("sasl.kerberos.min.time.before.relogin", LONG, 60_000, MEDIUM, mode=PER_BROKER),
        Definition("sasl.kerberos.principal.to.local.rules", LIST, ("DEFAULT",), MEDIUM, mode=PER_BROKER),
        Definition("sasl.kerberos.service.name", STRING, None, MEDIUM, mode=PER_BROKER),
        Definition("sasl.kerberos.ticket.renew.jitter", DOUBLE, 0.05, MEDIUM, mode=PER_BROKER),
        Definition("sasl.kerberos.ticket.renew.window.factor", DOUBLE, 0.8, MEDIUM, mode=PER_BROKER),
        Definition("sasl.login.callback.handler.class", CLASS, None, MEDIUM),
        Definition("sasl.login.class", CLASS, None, MEDIUM),
        Definition("sasl.login.connect.timeout.ms", INT, None, LOW),
        Definition("sasl.login.read.timeout.ms", INT, None, LOW),
        Definition("sasl.login.refresh.buffer.seconds", SHORT, 300, MEDIUM, mode=PER_BROKER),
        Definition("sasl.login.refresh.min.period.seconds", SHORT, 60, MEDIUM, mode=PER_BROKER),
        Definition("sasl.login.refresh.window.factor", DOUBLE, 0.8, MEDIUM, mode=PER_BROKER),
        Definition("sasl.login.refresh.window.jitter", DOUBLE, 0.05, MEDIUM, mode=PER_BROKER),
        Definition("sasl.login.retry.backoff.max.ms", LONG, 10_000, LOW),
        Definition("sasl.login.retry.backoff.ms", LONG, 100, LOW),
        Definition("sasl.mechanism.controller.protocol", STRING, "GSSAPI", HIGH, served=True),
        Definition("sasl.mechanism.inter.broker.protocol", STRING, "GSSAPI", MEDIUM, mode=PER_BROKER, served=True),
        Definition(
            "sasl.oauthbearer.assertion.algorithm",
            STRING,
            "RS256",
            MEDIUM,
            OneOf(("ES256", "RS256"), fold_case=True),
        ),
        Definition("sasl.oauthbearer.assertion.claim.aud", STRING, None, MEDIUM),
        Definition("sasl.oauthbearer.assertion.claim.exp.seconds", INT, 300, LOW, Range(0, 86_400)),
        Definition("sasl.oauthbearer.assertion.claim.iss", STRING, None, MEDIUM),
        Definition("sasl.oauthbearer.assertion.claim.jti.include", BOOLEAN, False, MEDIUM),
        Definition("sasl.oauthbearer.assertion.claim.nbf.seconds", INT, 60, LOW, Range(0, 3600)),
        Definition("sasl.oauthbearer.assertion.claim.sub", STRING, None, MEDIUM),
        Definition("sasl.oauthbearer.assertion.file", STRING, None, MEDIUM),
        Definition("sasl.oauthbearer.assertion.private.key.file", STRING, None, MEDIUM),
        Definition("sasl.oauthbearer.assertion.private.key.passphrase", PASSWORD, None, MEDIUM),
        Definition("sasl.oauthbearer.assertion.template.file", STRING, None, MEDIUM),
        Definition("sasl.oauthbearer.client.credentials.client.id", STRING, None, MEDIUM),
        Definition("sasl.oauthbearer.client.credentials.client.secret", PASSWORD, None, MEDIUM),
        Definition("sasl.oauthbearer.clock.skew.seconds", INT, 30, LOW, served=True),
        Definition("sasl.oauthbearer.expected.audience", LIST, (), HIGH, served=True),
        Definition("sasl.oauthbearer.expected.issuer", STRING, None, HIGH, served=True),
        Definition("sasl.oauthbearer.jwks.endpoint.refresh.ms", LONG, 3_600_000, LOW, served=True),
        Definition("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", LONG, 10_000, LOW, served=True),
        Definition("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", LONG, 100, LOW, served=True),
        Definition("sasl.oauthbearer.jwks.endpoint.url", STRING, None, MEDIUM, served=True),
        Definition(
            "sasl.oauthbearer.jwt.retriever.class",
            CLASS,
            "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever",
            MEDIUM,
        ),
        Definition(
            "sasl.oauthbearer.jwt.validator.class",
            CLASS,
            "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator",
            MEDIUM,
        ),
        Definition("sasl.oauthbearer.scope", STRING, None, MEDIUM),
        Definition("sasl.oauthbearer.scope.claim.name", STRING, "scope", LOW, served=True),
        Definition("sasl.oauthbearer.sub.claim.name", STRING, "sub", LOW, served=True),
        Definition("sasl.oauthbearer.token.endpoint.url", STRING, None, MEDIUM),
        Definition("sasl.server.callback.handler.class", CLASS, None, MEDIUM),
        Definition("sasl.server.max.receive.size", INT, 524_288, MEDIUM, served=True),
        Definition(
            "security.inter.broker.protocol",
            STRING,
            "PLAINTEXT",
            MEDIUM,
            OneOf(("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")),
            served=True,
        ),
        Definition("security.providers", STRING, None, LOW),
        Definition("ssl.allow.dn.changes", BOOLEAN, False, LOW),
        Definition("ssl.allow.san.changes", BOOLEAN, False, LOW),
        Definition("ssl.cipher.suites", LIST, (), MEDIUM, mode=PER_BROKER),
        Definition(
            "ssl.client.auth",
            STRING,
            "none",
            MEDIUM,
            OneOf(("required", "requested", "none")),
            PER_BROKER,
            served=True,
        ),
        Definition("ssl.enabled.protocols", LIST, ("TLSv1.2", "TLSv1.3"), MEDIUM, mode=PER_BROKER, served=True),
        Definition("ssl.endpoint.identification.algorithm", STRING, "https", LOW, mode=PER_BROKER, served=True),
        Definition("ssl.engine.factory.class", CLASS, None, LOW, mode=PER_BROKER),
        Definition("ssl.key.password", PASSWORD, None, MEDIUM, mode=PER_BROKER, served=True),
        Definition("ssl.keymanager.algorithm", STRING, "SunX509", MEDIUM, mode=PER_BROKER),
        Definition("ssl.keystore.certificate.chain", PASSWORD, None, MEDIUM, mode=PER_BROKER),
        Definition("ssl.keystore.key", PASSWORD, None, MEDIUM, mode=PER_BROKER),
        Definition("ssl.keystore.location", STRING, None, MEDIUM, mode=PER_BROKER, served=True),
        Definition("ssl.keystore.password", PASSWORD, None, MEDIUM, mode=PER_BROKER),
        Definition("ssl.keystore.type", STRING, "JKS", MEDIUM, mode=PER_BROKER, served=True),
        Definition("ssl.principal.mapping.rules", STRING, "DEFAULT", LOW, served=True),
        Definition("ssl.protocol", STRING, "TLSv1.3", MEDIUM, mode=PER_BROKER),
        Definition("ssl.provider", STRING, None, MEDIUM, mode=PER_BROKER),
        Definition("ssl.secure.random.implementation", STRING, None, LOW, mode=PER_BROKER),
        Definition("ssl.trustmanager.algorithm", STRING, "PKIX", MEDIUM, mode=PER_BROKER),
        Definition("ssl.truststore.certificates", PASSWORD, None, MEDIUM, mode=PER_BROKER, served=True),
        Definition("ssl.truststore.location", STRING, None, MEDIUM, mode=PER_BROKER, served=True),
        Definition("ssl.truststore.password", PASSWORD, None, MEDIUM, mode=PER_BROKER),
        Definition("ssl.truststore.type", STRING, "JKS", MEDIUM, mode=PER_BROKER, served=True),
    )
)
