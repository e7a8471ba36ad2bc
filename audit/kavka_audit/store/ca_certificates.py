"""Whose certificates a store may have: what AWS_CA_BUNDLE names, and those that the machine trusts.

Java reads no PEM. `key_store` makes of it the oldest form of Java's own, JKS, which is a list of certificates with a
checksum behind it; without a password, as nothing in it is secret.
"""

import hashlib
import re
import ssl
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

BUNDLE: Final = "AWS_CA_BUNDLE"
BLOCK: Final = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
MAGIC: Final = 0xFEEDFEED
VERSION: Final = 2
CERTIFICATE: Final = 2
"""The kind of an entry that is trusted, and has no key."""
SALT: Final = b"Mighty Aphrodite"
"""What Java's checksum begins with, behind the password."""


def of_machine() -> Path | None:
    """Return the file with the authorities that the machine trusts, whatever SSL_CERT_FILE says."""
    paths = ssl.get_default_verify_paths()
    files = (Path(paths.openssl_cafile), Path(paths.openssl_capath, "ca-certificates.crt"))
    return next((file for file in files if file.is_file()), None)


def java_options(environment: Mapping[str, str], directory: Path) -> dict[str, str]:
    """Return the properties by which Java trusts the bundle too; none without one. Writes a file into the directory.
    Raises OSError and ValueError where the bundle cannot be read.
    """
    bundle, own = environment.get(BUNDLE), of_machine()
    if not bundle:
        return {}
    place = directory / "trusted.jks"
    place.write_bytes(key_store([file.read_text(encoding="utf-8") for file in (Path(bundle), own) if file is not None]))
    return {"javax.net.ssl.trustStore": str(place), "javax.net.ssl.trustStoreType": "JKS"}


def key_store(texts: Sequence[str]) -> bytes:
    """Return the certificates in these texts as a key store of Java's. Raises ValueError."""
    found = [ssl.PEM_cert_to_DER_cert(block) for text in texts for block in BLOCK.findall(text)]
    entries = b"".join(_entry(str(number), der) for number, der in enumerate(found))
    kept = struct.pack(">III", MAGIC, VERSION, len(found)) + entries
    # Not for security: Java compares it where a password is given.
    return kept + hashlib.sha1(SALT + kept, usedforsecurity=False).digest()


def _entry(alias: str, der: bytes) -> bytes:
    head = struct.pack(">I", CERTIFICATE) + _text(alias) + struct.pack(">Q", 0) + _text("X.509")
    return head + struct.pack(">I", len(der)) + der


def _text(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode("ascii")
