"""Keys are drawn and certificates signed here, with `cryptography`; P-256, as its handshakes are the cheapest.

Nothing here is decided: what has to be drawn, and when, `renewal` says. Keys are PKCS #8 in PEM, which OpenSSL and Java
both read.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

BACKDATED = timedelta(hours=1)
"""How much before now a certificate begins to hold, as the clocks of those who look at it may be behind."""
COMMON_NAME_LENGTH_MAX = 64


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its key, as PEM. The key is left out of what is printed."""

    certificate: str
    key: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Facts:
    """From when to when a certificate holds, and for which hosts."""

    begins: datetime
    ends: datetime
    names: frozenset[str]


def new_authority(name: str, organization: str, now: datetime, ends: datetime) -> Pair:
    """An authority that signs itself."""
    key, subject = ec.generate_private_key(ec.SECP256R1()), _name(name, organization)
    usage = {"digital_signature": True, "key_cert_sign": True, "crl_sign": True}
    builder = _builder(subject, subject, key.public_key(), now, ends)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_usage(usage), critical=True)
    builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    return _pair(builder.sign(key, hashes.SHA256()), key)


def signed(authority: Pair, name: str, organization: str, hosts: Iterable[str], now: datetime, ends: datetime) -> Pair:
    """A certificate of a node or of the operator, by which it serves and is a client; its subject names no host."""
    issuer, issuer_key = _certificate(authority.certificate), _key(authority.key)
    key = ec.generate_private_key(ec.SECP256R1())
    uses = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    builder = _builder(_name(name, organization), issuer.subject, key.public_key(), now, ends)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(_usage({"digital_signature": True}), critical=True)
    builder = builder.add_extension(x509.ExtendedKeyUsage(uses), critical=False)
    builder = builder.add_extension(
        x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False
    )
    if names := [_host(host) for host in sorted(set(hosts))]:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return _pair(builder.sign(issuer_key, hashes.SHA256()), key)


def facts(pair: Pair) -> Facts | None:
    """The facts of a certificate; None where it cannot be read, or the key is another one's."""
    try:
        certificate, key = _certificate(pair.certificate), _key(pair.key)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return None
    if certificate.public_key() != key.public_key():
        return None
    return _facts(certificate)


def ends_of(certificate: str) -> datetime | None:
    """The end of a certificate, the first of a text; None where it cannot be read."""
    try:
        return _certificate(certificate).not_valid_after_utc
    except (ValueError, TypeError):
        return None


def is_signed_by(certificate: str, authority: str) -> bool:
    """Whether an authority has signed a certificate."""
    try:
        _certificate(certificate).verify_directly_issued_by(_certificate(authority))
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
        return False
    return True


def _facts(certificate: x509.Certificate) -> Facts:
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        names = frozenset(str(name.value) for name in found)
    except x509.ExtensionNotFound:
        names = frozenset()
    return Facts(certificate.not_valid_before_utc, certificate.not_valid_after_utc, names)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime, ends: datetime
) -> x509.CertificateBuilder:
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key)
    builder = builder.serial_number(x509.random_serial_number())
    return builder.not_valid_before((now - BACKDATED).astimezone(UTC)).not_valid_after(ends.astimezone(UTC))


def _name(name: str, organization: str) -> x509.Name:
    return x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization),
            x509.NameAttribute(NameOID.COMMON_NAME, name[:COMMON_NAME_LENGTH_MAX]),
        ]
    )


def _usage(allowed: dict[str, bool]) -> x509.KeyUsage:
    kinds = (
        "digital_signature",
        "content_commitment",
        "key_encipherment",
        "data_encipherment",
        "key_agreement",
        "key_cert_sign",
        "crl_sign",
        "encipher_only",
        "decipher_only",
    )
    return x509.KeyUsage(**{kind: allowed.get(kind, False) for kind in kinds})


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Pair:
    encoded = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return Pair(certificate.public_bytes(serialization.Encoding.PEM).decode(), encoded.decode())


def _certificate(text: str) -> x509.Certificate:
    """The first certificate of a text. Raises ValueError."""
    return x509.load_pem_x509_certificate(text.encode())


def _key(text: str) -> ec.EllipticCurvePrivateKey:
    """The key of a text. Raises ValueError, TypeError, UnsupportedAlgorithm."""
    key = serialization.load_pem_private_key(text.encode(), None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise TypeError("a key of another kind than is drawn here")
    return key
