"""What a client must show a broker, as the properties that Java's clients and Kafka's tools take.

One way in: the file that `--command-config` names, of which each property is understood or refused. It may say by
`bootstrap.servers` which Kafka it is for, as that of a KafkaUser does. Where it says of TLS nothing of whom to trust,
the file that SSL_CERT_FILE names does, as for all that is built on OpenSSL. One way out: the properties by which
Spark's Kafka source is let in as this process was.
"""

import os
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from kavka_broker.core.config.definition import ConfigError
from kavka_broker.core.config.properties import parse_properties
from kavka_cli.output import CommandError
from kavka_operator.domain.access import OPEN, Origin, Security

OPTION: Final = "--command-config"
STANDARD_INPUT: Final = Path("-")
PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
LOGIN_MODULES: Final = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
PART: Final = re.compile(r"\s+(username|password)\s*=\s*(\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')")
PEM: Final = "PEM"
LOCATIONS: Final = ("ssl.truststore.location", "ssl.keystore.location")
TYPES: Final = ("ssl.truststore.type", "ssl.keystore.type")
CERTIFICATES: Final = ("ssl.truststore.certificates", "ssl.keystore.certificate.chain")
TEXTS: Final = (*CERTIFICATES, "ssl.keystore.key")
BOOTSTRAP: Final = "bootstrap.servers"
LOGIN: Final = "sasl.jaas.config"
TRUSTED: Final = "SSL_CERT_FILE"
KNOWN: Final = {BOOTSTRAP, "security.protocol", "sasl.mechanism", "sasl.jaas.config", *LOCATIONS, *TYPES, *TEXTS}
BLOCK: Final = re.compile(r"-----BEGIN ([A-Z ]+)-----.*?-----END \1-----", re.DOTALL)


def client_of_file(path: Path) -> tuple[Security, str | None]:
    """Return what the file says, and the brokers that it names, if any. Raises CommandError, which names the property
    that is not understood.
    """
    properties = read_properties(path)
    return security_of_properties(properties, f"{OPTION}: {path}", OPTION), properties.get(BOOTSTRAP)


def read_properties(path: Path) -> dict[str, str]:
    """Return the properties of the file that `--command-config` names; `-` is standard input. Raises CommandError."""
    try:
        return parse_properties(sys.stdin.read() if path == STANDARD_INPUT else path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise CommandError(f"{OPTION}: {path} cannot be read: {problem.strerror}") from problem
    except (ConfigError, UnicodeDecodeError) as problem:
        raise CommandError(f"{OPTION}: {path} is no properties file: {problem}") from problem


def security_of_properties(properties: Mapping[str, str], place: str, named: str = "") -> Security:
    """Return what properties say, which errors place there; what brokers refuse later is placed at `named`. Raises
    CommandError, which names the property that is not understood.
    """
    try:
        return _security(properties, lambda name: _text(properties, name), origin_of(named or place))
    except ValueError as problem:
        raise CommandError(f"{place}: {problem}") from problem


def origin_of(place: str) -> Origin:
    """The names of properties that a person has to put right."""
    return Origin(
        login=f"{place}: sasl.jaas.config",
        place="the file",
        tls=f"{place}: security.protocol",
        authority="ssl.truststore.location",
        own="ssl.keystore.location",
        pair="what it has",
    )


def _security(properties: Mapping[str, str], text: Callable[[str], str], origin: Origin) -> Security:
    """Raises ValueError, which names the property."""
    if unknown := sorted(properties.keys() - KNOWN):
        raise ValueError(f"{unknown[0]} is not understood; {', '.join(sorted(KNOWN))} are")
    protocol = properties.get("security.protocol", "PLAINTEXT")
    if protocol not in PROTOCOLS:
        raise ValueError(f"security.protocol: {protocol!r} is none of {', '.join(PROTOCOLS)}")
    for name, location in zip(TYPES, LOCATIONS, strict=True):
        kind = properties.get(name, "JKS" if location in properties else PEM)
        if kind != PEM:
            raise ValueError(f"{name}: {kind} is not read; give certificates as {PEM}, and say so by {name}={PEM}")
    is_tls, is_sasl = protocol.endswith("SSL"), protocol.startswith("SASL")
    if not is_tls and (useless := sorted(name for name in properties if name.startswith("ssl."))):
        raise ValueError(f"{useless[0]} is for TLS, and security.protocol is {protocol}")
    if not is_sasl and (useless := sorted(name for name in properties if name.startswith("sasl."))):
        raise ValueError(f"{useless[0]} is for SASL, and security.protocol is {protocol}")
    mechanism, username, password = _login(properties) if is_sasl else (None, None, None)
    certificate, key = _own(properties, text)
    authority = _authority(properties, text) if is_tls else None
    return Security(is_tls, authority, certificate, key, mechanism, username, password, origin=origin)


def _login(properties: Mapping[str, str]) -> tuple[str, str, str]:
    mechanism = properties.get("sasl.mechanism", "")
    if mechanism not in LOGIN_MODULES:
        raise ValueError(f"sasl.mechanism: {mechanism!r} is none of {', '.join(LOGIN_MODULES)}")
    module, found = LOGIN_MODULES[mechanism], parsed_login(properties.get(LOGIN, ""))
    if found is None or found[0] != module:
        raise ValueError(f'{LOGIN} is not of the form {module} required username="..." password="...";')
    return mechanism, *found[1:]


def parsed_login(config: str) -> tuple[str, str, str] | None:
    """Return module, username and password of a `sasl.jaas.config`; None where it has another form."""
    parts = {name: re.sub(r"\\(.)", r"\1", quoted[1:-1]) for name, quoted in PART.findall(config)}
    rest = PART.sub("", config).split()
    is_known = rest[:1] and rest[0] in LOGIN_MODULES.values() and rest[1:] in (["required;"], ["required", ";"])
    return (rest[0], parts["username"], parts["password"]) if is_known and len(parts) == 2 else None


def shown_login(config: str) -> str:
    """Return a `sasl.jaas.config` with its module and username alone; nothing of one of another form."""
    found = parsed_login(config)
    return "***" if found is None else f'{found[0]} required username={_quoted(found[1])} password="***";'


def _authority(properties: Mapping[str, str], text: Callable[[str], str]) -> str | None:
    if "ssl.truststore.certificates" in properties:
        return properties["ssl.truststore.certificates"]
    if "ssl.truststore.location" in properties:
        return text("ssl.truststore.location")
    return _text(os.environ, TRUSTED) if os.environ.get(TRUSTED) else None


def _own(properties: Mapping[str, str], text: Callable[[str], str]) -> tuple[str | None, str | None]:
    """The client's own certificates and their key: of one file, or of two properties."""
    if "ssl.keystore.location" in properties:
        found = [(block[0], block[1]) for block in BLOCK.finditer(text("ssl.keystore.location"))]
        keys = [block for block, kind in found if kind.endswith("PRIVATE KEY")]
        certificates = [block for block, kind in found if kind == "CERTIFICATE"]
        if len(keys) != 1 or not certificates:
            raise ValueError("ssl.keystore.location: a file with certificates and one private key as PEM is needed")
        return "\n".join(certificates), keys[0]
    certificate, key = properties.get("ssl.keystore.certificate.chain"), properties.get("ssl.keystore.key")
    if (certificate is None) != (key is None):
        raise ValueError("ssl.keystore.certificate.chain and ssl.keystore.key go together")
    return certificate, key


def _text(properties: Mapping[str, str], name: str) -> str:
    """Raises ValueError."""
    try:
        return Path(properties[name]).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise ValueError(f"{name}: {properties[name]} cannot be read: {problem}") from problem


def java_properties(security: Security) -> dict[str, str]:
    """Return the properties by which a Java client shows this."""
    if security == OPEN:
        return {}
    properties = {"security.protocol": security.protocol}
    if security.authority is not None:
        properties |= {"ssl.truststore.type": PEM, "ssl.truststore.certificates": security.authority}
    if security.certificate is not None and security.key is not None:
        properties |= {
            "ssl.keystore.type": PEM,
            "ssl.keystore.certificate.chain": security.certificate,
            "ssl.keystore.key": security.key,
        }
    if security.mechanism is not None:
        username, password = (_quoted(text or "") for text in (security.username, security.password))
        module = LOGIN_MODULES[security.mechanism]
        properties["sasl.mechanism"] = security.mechanism
        properties["sasl.jaas.config"] = f"{module} required username={username} password={password};"
    return properties


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
