"""An authorization server's key, and tokens that it has signed, by openssl."""

import json
import subprocess
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ED25519 = "Ed25519"
COORDINATE_BYTES = {"P-256": 32, "P-384": 48, "P-521": 66}
ALGORITHM_OF = {"": "RS256", "P-256": "ES256", "P-384": "ES384", "P-521": "ES512", ED25519: "EdDSA"}


def encoded(data: bytes) -> str:
    """In base64url without padding."""
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def raw(signature: bytes, size_bytes: int) -> bytes:
    """A signature of a curve as tokens have it, out of openssl's DER: two numbers of a coordinate's size."""
    rest, numbers = signature[3 if signature[1] & 0x80 else 2 :], b""
    while rest:
        length = rest[1]
        numbers += int.from_bytes(rest[2 : 2 + length], "big").to_bytes(size_bytes, "big")
        rest = rest[2 + length :]
    return numbers


class Issuer:
    """One key in a new directory: of a curve, or of RSA where none is named."""

    def __init__(self, directory: Path, key_id: str = "first", bits: int = 2048, *, curve: str = "") -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.key_id = key_id
        self.algorithm = ALGORITHM_OF[curve]
        self._curve = curve
        self._path = directory / f"{key_id}.pem"
        if curve == ED25519:
            kind = ["-algorithm", "ed25519"]
        elif curve:
            kind = ["-algorithm", "EC", "-pkeyopt", f"ec_paramgen_curve:{curve}"]
        else:
            kind = ["-algorithm", "RSA", "-pkeyopt", f"rsa_keygen_bits:{bits}"]
        self._run("genpkey", *kind, "-out", str(self._path))

    @property
    def key(self) -> dict[str, Any]:
        """The public key as a set of keys has it."""
        named = {"kid": self.key_id, "use": "sig"}
        if not self._curve:
            line = self._run("rsa", "-in", str(self._path), "-noout", "-modulus").decode()
            modulus = bytes.fromhex(line.strip().partition("=")[2])
            return {"kty": "RSA", **named, "n": encoded(modulus), "e": "AQAB"}
        point = self._run("pkey", "-in", str(self._path), "-pubout", "-outform", "DER")
        if self._curve == ED25519:
            return {"kty": "OKP", "crv": ED25519, **named, "x": encoded(point[-32:])}
        size = COORDINATE_BYTES[self._curve]
        x, y = point[-2 * size : -size], point[-size:]
        return {"kty": "EC", "crv": self._curve, **named, "x": encoded(x), "y": encoded(y)}

    def key_set(self, *others: "Issuer") -> bytes:
        return json.dumps({"keys": [issuer.key for issuer in (self, *others)]}).encode()

    def token(self, claims: Mapping[str, Any], algorithm: str = "", *, salt: str = "digest", **header: Any) -> str:
        """A signed token, by the key's own algorithm or another of RSA; `salt` is the length of that of PSS. `header`
        adds to its header, or takes out a None.
        """
        algorithm = algorithm or self.algorithm
        named = {"alg": algorithm, "typ": "JWT", "kid": self.key_id, **header}
        head = {name: value for name, value in named.items() if value is not None}
        covered = ".".join(encoded(json.dumps(part).encode()) for part in (head, dict(claims)))
        return f"{covered}.{encoded(self._signature(covered.encode(), algorithm, salt))}"

    def _signature(self, covered: bytes, algorithm: str, salt: str) -> bytes:
        if self._curve == ED25519:
            message = self._path.with_suffix(".message")  # it signs no stream
            message.write_bytes(covered)
            return self._run("pkeyutl", "-sign", "-inkey", str(self._path), "-rawin", "-in", str(message))
        options = [f"-sha{algorithm[2:]}", "-sign", str(self._path)]
        if algorithm.startswith("PS"):
            options += ["-sigopt", "rsa_padding_mode:pss", "-sigopt", f"rsa_pss_saltlen:{salt}"]
        signature = self._run("dgst", *options, covered=covered)
        return raw(signature, COORDINATE_BYTES[self._curve]) if self._curve else signature

    @staticmethod
    def _run(*words: str, covered: bytes = b"") -> bytes:
        return subprocess.run(["openssl", *words], check=True, capture_output=True, input=covered).stdout
