"""What a configuration asks of clients: JAAS texts, keys of a listener, and refusals, without a password in them."""

import subprocess
from pathlib import Path

import pytest

from kavka_broker.core.authentication.jaas import JaasError, parse_jaas
from kavka_broker.core.authentication.settings import BEARER_MODULE, PLAIN_MODULE, sasl_of
from kavka_broker.core.authentication.token_claims import TokenSettings
from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.config.definition import ConfigError
from kavka_broker.runtime.addresses import StartError, check

JAAS = f'{PLAIN_MODULE} required username="admin" password="s1" user_admin="s1" user_alice="a;= \\"b\\"";'
KEY = "listener.name.clients.plain.sasl.jaas.config"
SCRAM_KEY = "listener.name.clients.scram-sha-512.sasl.jaas.config"
LISTENERS = {
    "node.id": "1",
    "process.roles": "broker,controller",
    "controller.listener.names": "CONTROLLER",
    "listeners": "CLIENTS://:9092,INSIDE://:9091,CONTROLLER://:9093",
    "listener.security.protocol.map": "CLIENTS:SASL_PLAINTEXT,INSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "advertised.listeners": "CLIENTS://localhost:9092,INSIDE://localhost:9091",
    "inter.broker.listener.name": "INSIDE",
    "sasl.enabled.mechanisms": "PLAIN",
    KEY: JAAS,
}


def config(**changed: str | None) -> BrokerConfig:
    wanted = {**LISTENERS, **{name.replace("__", "."): text for name, text in changed.items()}}
    return BrokerConfig.parse({name: text for name, text in wanted.items() if text is not None})


def test_a_login_module_is_read_with_its_options() -> None:
    module = parse_jaas(JAAS)
    assert module.name == PLAIN_MODULE
    assert module.options == {"username": "admin", "password": "s1", "user_admin": "s1", "user_alice": 'a;= "b"'}
    assert parse_jaas("a.B required x=true y='';"[:-5] + ";").options == {"x": "true"}


@pytest.mark.parametrize(
    "text",
    ["", "a", "a required", "a maybe;", 'a required x="1"', 'a required x "1";', 'a required x="1;', "a required é=1;",
     'a required x="1"; b required y="2";'],
)  # fmt: skip
def test_what_is_no_login_module(text: str) -> None:
    with pytest.raises(JaasError):
        parse_jaas(text)


def test_a_listener_asks_as_its_keys_say_and_the_others_do_not() -> None:
    found = config()
    asked = {listener.name: sasl_of(found, listener) for listener in found.listeners.opened}
    assert asked["INSIDE"] is asked["CONTROLLER"] is None
    assert asked["CLIENTS"] is not None
    assert asked["CLIENTS"].mechanisms == ("PLAIN",)
    assert asked["CLIENTS"].plain_users == {"admin": "s1", "alice": 'a;= "b"'}
    check(found)


@pytest.mark.parametrize(
    ("keys", "session_ms"),
    [
        ({}, 0),
        ({"connections__max__reauth__ms": "60000"}, 60_000),
        (
            {"connections__max__reauth__ms": "60000", "listener__name__inside__connections__max__reauth__ms": "1"},
            60_000,
        ),
        ({"connections__max__reauth__ms": "60000", "listener__name__clients__connections__max__reauth__ms": "7"}, 7),
        (
            {
                "listener__name__clients__connections__max__reauth__ms": "7",
                "listener__name__CLIENTS__plain__connections__max__reauth__ms": "5",
            },
            5,
        ),
    ],
)
def test_a_login_holds_as_long_as_the_closest_key_says(keys: dict[str, str], session_ms: int) -> None:
    found = config(**keys)
    asked = next(sasl for listener in found.listeners.opened if (sasl := sasl_of(found, listener)) is not None)
    assert asked.session_ms_max == {"PLAIN": session_ms}
    check(found)


def test_a_user_of_the_configuration_has_so_many_characters() -> None:
    check(config(**{KEY: f'{PLAIN_MODULE} required user_{"u" * 256}="x";'}))
    with pytest.raises(StartError, match=r"names a user by 257 characters; 256 are allowed$"):
        check(config(**{KEY: f'{PLAIN_MODULE} required user_a="x" user_{"u" * 257}="hidden";'}))


def test_scram_needs_no_users_in_the_configuration() -> None:
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    found = config(
        sasl__enabled__mechanisms="SCRAM-SHA-256,SCRAM-SHA-512", **{KEY: None, SCRAM_KEY: f"{module} required;"}
    )
    check(found)
    asked = next(sasl for listener in found.listeners.opened if (sasl := sasl_of(found, listener)) is not None)
    assert (asked.mechanisms, asked.plain_users) == (("SCRAM-SHA-256", "SCRAM-SHA-512"), {})


def test_the_mechanisms_of_one_listener_win() -> None:
    found = config(sasl__enabled__mechanisms=None, listener__name__clients__sasl__enabled__mechanisms="PLAIN")
    check(found)
    with pytest.raises(StartError, match='"GSSAPI" is not served'):
        check(config(listener__name__clients__sasl__enabled__mechanisms="PLAIN,GSSAPI"))


OWN = "listener.name.clients.oauthbearer."
SIGNED = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
TOKENS: dict[str, str | None] = {
    "sasl.enabled.mechanisms": "OAUTHBEARER",
    KEY: None,
    f"{OWN}sasl.server.callback.handler.class": SIGNED,
    "sasl.oauthbearer.jwks.endpoint.url": "https://issuer/keys",
}


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({}, TokenSettings("https://issuer/keys")),
        (
            {
                "sasl.oauthbearer.expected.issuer": "https://issuer",
                "listener.name.clients.sasl.oauthbearer.expected.issuer": "https://other",
                f"{OWN}sasl.oauthbearer.expected.audience": "kafka,mail",
                f"{OWN}sasl.oauthbearer.jwks.endpoint.url": "file:///keys",
                "listener.name.clients.sasl.oauthbearer.jwks.endpoint.url": "http://never",
                "sasl.oauthbearer.clock.skew.seconds": "5",
                "sasl.oauthbearer.sub.claim.name": " email",
                f"{OWN}sasl.oauthbearer.scope.claim.name": "scp",
                "sasl.oauthbearer.jwks.endpoint.refresh.ms": "7",
            },
            TokenSettings("file:///keys", "https://other", ("kafka", "mail"), 5, "email", "scp", 7),
        ),
        (
            {
                f"{OWN}sasl.server.callback.handler.class": SIGNED.replace("oauthbearer.O", "oauthbearer.secured.O"),
                f"{OWN}sasl.jaas.config": f"{BEARER_MODULE} required;",
            },
            TokenSettings("https://issuer/keys"),
        ),
    ],
)
def test_what_a_listener_asks_of_tokens(keys: dict[str, str | None], expected: TokenSettings) -> None:
    found = config(**{**TOKENS, **keys})
    check(found)
    asked = next(sasl for listener in found.listeners.opened if (sasl := sasl_of(found, listener)) is not None)
    assert asked.tokens is not None
    assert asked.tokens.settings == expected


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({f"{OWN}sasl.server.callback.handler.class": None}, "is missing; tokens have to be signed: write org.apache"),
        ({f"{OWN}sasl.server.callback.handler.class": "a.B"}, "names another class; tokens have to be signed"),
        ({"sasl.server.callback.handler.class": SIGNED}, "sasl.server.callback.handler.class: this version does not"),
        ({"sasl.oauthbearer.jwks.endpoint.url": None}, 'jwks.endpoint.url: "" has no scheme of file, http, https'),
        ({"sasl.oauthbearer.jwks.endpoint.url": "/keys"}, '"/keys" has no scheme'),
        ({"sasl.oauthbearer.clock.skew.seconds": "-1"}, "a time that is too short"),
        ({f"{OWN}sasl.oauthbearer.clock.skew.seconds": "x"}, f"{OWN}sasl.oauthbearer.clock.skew.seconds: "),
        ({"sasl.oauthbearer.sub.claim.name": " "}, "an empty claim"),
        ({f"{OWN}sasl.jaas.config": "a.B required;"}, "a.B is not served; write org.apache"),
        ({"sasl.oauthbearer.token.endpoint.url": "https://issuer"}, "this version does not do that"),
        (
            {"inter.broker.listener.name": "CLIENTS", "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER"},
            '"OAUTHBEARER" is not served for CLIENTS; write PLAIN, SCRAM-SHA-256, SCRAM-SHA-512',
        ),
    ],
)
def test_what_is_not_served_of_tokens_stops_the_start(keys: dict[str, str | None], words: str) -> None:
    with pytest.raises((StartError, ConfigError)) as refused:
        check(config(**{**TOKENS, **keys}))
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"sasl__enabled__mechanisms": None}, 'sasl.enabled.mechanisms: "GSSAPI" is not served; write PLAIN, SCRAM'),
        ({"sasl__enabled__mechanisms": "SCRAM-SHA-1"}, '"SCRAM-SHA-1" is not served'),
        ({SCRAM_KEY: 'some.Other required password="hidden";'}, "some.Other is not served; write org.apache"),
        ({KEY: None}, f"{KEY}: is missing"),
        ({KEY: 'some.Other required user_a="hidden";'}, "some.Other is not served"),
        ({KEY: f'{PLAIN_MODULE} required user_a="hidden"'}, "semicolon"),
        ({KEY: f'{PLAIN_MODULE} required username="a" password="hidden";'}, "names no user"),
        (
            {"listener.name.clients.plain.connections.max.reauth.ms": "soon"},
            "listener.name.clients.plain.connections.max.reauth.ms: ",
        ),
        ({"sasl.jaas.config": JAAS}, "is read from listener.name.X.MECHANISM.sasl.jaas.config"),
        (
            {"listener.name.clients.plain.sasl.server.callback.handler.class": "a.B"},
            "does not do that of TLS or SASL",
        ),
        ({"inter__broker__listener__name": "CLIENTS"}, 'protocol: "GSSAPI" is not served for CLIENTS; write PLAIN, S'),
        (
            {"listener__security__protocol__map": "CLIENTS:SASL_PLAINTEXT,INSIDE:PLAINTEXT,CONTROLLER:SASL_PLAINTEXT"},
            'sasl.mechanism.controller.protocol: "GSSAPI" is not served for CONTROLLER; write PLAIN',
        ),
        (
            {"listener__security__protocol__map": "CLIENTS:SASL_SSL,INSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT"},
            "ssl.keystore.location: is missing; CLIENTS needs a PEM file",
        ),
    ],
)
def test_what_is_not_served_stops_the_start_and_shows_no_password(changed: dict[str, str | None], words: str) -> None:
    with pytest.raises((StartError, ConfigError)) as refused:
        check(config(**changed))
    assert words in str(refused.value)
    assert "hidden" not in str(refused.value)


TLS: dict[str, str | None] = {
    KEY: None,
    "sasl.enabled.mechanisms": None,
    "listener.security.protocol.map": "CLIENTS:SSL,INSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "ssl.keystore.type": "PEM",
    "ssl.truststore.type": "PEM",
}


@pytest.fixture
def keystore(tmp_path: Path) -> dict[str, str]:
    """A key with its certificate, and the same where the key is encrypted."""
    line = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-subj", "/CN=b"]
    for name, words in {"plain": ["-nodes"], "locked": ["-passout", "pass:sesame"]}.items():
        made = [*line, *words, "-keyout", f"{name}.key", "-out", f"{name}.crt"]
        subprocess.run(made, cwd=tmp_path, check=True, capture_output=True)
        (tmp_path / f"{name}.pem").write_text(
            (tmp_path / f"{name}.key").read_text() + (tmp_path / f"{name}.crt").read_text()
        )
    (tmp_path / "none.pem").write_text("no PEM, but a secret: hidden")
    return {path.stem: str(path) for path in tmp_path.glob("*.pem")}


@pytest.mark.parametrize(
    ("store", "changed"),
    [
        ("plain", {}),
        ("locked", {"ssl.key.password": "sesame"}),
        ("plain", {"ssl.client.auth": "required", "ssl.truststore.location": "{plain}"}),
        ("plain", {"listener.name.clients.ssl.enabled.protocols": "TLSv1.3", "ssl.principal.mapping.rules": "DEFAULT"}),
    ],
)
def test_a_listener_speaks_tls(keystore: dict[str, str], store: str, changed: dict[str, str]) -> None:
    given = {name: text.format(**keystore) for name, text in changed.items()}
    check(config(**{**TLS, "ssl.keystore.location": keystore[store], **given}))


@pytest.mark.parametrize(
    ("store", "changed", "words"),
    [
        ("none", {}, "no PEM file with a private key and its certificates"),
        ("locked", {}, "or another ssl.key.password"),
        ("locked", {"ssl.key.password": "wrong"}, "or another ssl.key.password"),
        ("plain", {"ssl.keystore.location": "/nowhere.pem"}, "ssl.keystore.location: /nowhere.pem: No such file"),
        ("plain", {"ssl.keystore.type": "JKS"}, "ssl.keystore.type: JKS is not read here; convert it"),
        (
            "plain",
            {"listener.name.clients.ssl.keystore.type": "PKCS12"},
            "listener.name.clients.ssl.keystore.type: PKCS12",
        ),
        ("plain", {"ssl.client.auth": "required"}, "no client is trusted; name ssl.truststore.location"),
        ("plain", {"ssl.client.auth": "required", "ssl.truststore.location": "{none}"}, "no certificates in PEM"),
        ("plain", {"ssl.client.auth": "required", "ssl.truststore.certificates": "hidden"}, "no certificates in PEM"),
        ("plain", {"ssl.enabled.protocols": "TLSv1.1"}, '"TLSv1.1" is not served'),
        ("plain", {"ssl.principal.mapping.rules": "NONE"}, "is no rule"),
        ("plain", {"ssl.keystore.key": "hidden"}, "does not do that of TLS or SASL"),
        ("plain", {"ssl.cipher.suites": "TLS_AES_256_GCM_SHA384"}, "does not do that of TLS or SASL"),
        (
            "plain",
            {
                "listener.name.clients.ssl.endpoint.identification.algorithm": "dns",
                "inter.broker.listener.name": "CLIENTS",
            },
            '"dns" is not served; write https',
        ),
    ],
)
def test_tls_that_cannot_be_spoken_stops_the_start(
    keystore: dict[str, str], store: str, changed: dict[str, str], words: str
) -> None:
    given = {name: text.format(**keystore) for name, text in changed.items()}
    with pytest.raises((StartError, ConfigError)) as refused:
        check(config(**{**TLS, "ssl.keystore.location": keystore[store], **given}))
    assert words in str(refused.value)
    assert not {"hidden", "sesame", "wrong"} & set(str(refused.value).split())
