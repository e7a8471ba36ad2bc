"""An authorization server's key, and tokens that it has signed, by openssl."""

import json
import subprocess
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def encoded(data: bytes) -> str:
    """In base64url without padding."""
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def raw(signature: bytes) -> bytes:
    """A signature of P-256 as tokens have it, out of openssl's DER: two numbers of 32 bytes."""
    first = 4 + signature[3]
    numbers = signature[4:first], signature[first + 2 :]
    return b"".join(int.from_bytes(number, "big").to_bytes(32, "big") for number in numbers)


class Issuer:
    """One key, of RSA or of P-256, in a new directory."""

    def __init__(self, directory: Path, key_id: str = "first", bits: int = 2048, *, is_curve: bool = False) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.key_id = key_id
        self._is_curve = is_curve
        self._path = directory / f"{key_id}.pem"
        kind = ["ecparam", "-name", "prime256v1", "-genkey", "-noout"] if is_curve else ["genrsa"]
        size = [] if is_curve else [str(bits)]
        subprocess.run(["openssl", *kind, "-out", str(self._path), *size], check=True, capture_output=True)

    @property
    def key(self) -> dict[str, Any]:
        """The public key as a set of keys has it."""
        if self._is_curve:
            line = ["openssl", "ec", "-in", str(self._path), "-pubout", "-outform", "DER"]
            point = subprocess.run(line, check=True, capture_output=True).stdout[-64:]
            x, y = encoded(point[:32]), encoded(point[32:])
            return {"kty": "EC", "crv": "P-256", "kid": self.key_id, "use": "sig", "x": x, "y": y}
        line = ["openssl", "rsa", "-in", str(self._path), "-noout", "-modulus"]
        modulus = subprocess.run(line, check=True, capture_output=True, text=True).stdout.strip().partition("=")[2]
        return {"kty": "RSA", "kid": self.key_id, "use": "sig", "n": encoded(bytes.fromhex(modulus)), "e": "AQAB"}

    def key_set(self, *others: "Issuer") -> bytes:
        return json.dumps({"keys": [issuer.key for issuer in (self, *others)]}).encode()

    def token(self, claims: Mapping[str, Any], algorithm: str = "RS256", *, salt: str = "digest", **header: Any) -> str:
        """A signed token; `salt` is the length of that of PSS. `header` adds to its header, or takes out a None."""
        named = {"alg": algorithm, "typ": "JWT", "kid": self.key_id, **header}
        head = {name: value for name, value in named.items() if value is not None}
        covered = ".".join(encoded(json.dumps(part).encode()) for part in (head, dict(claims)))
        line = ["openssl", "dgst", f"-sha{algorithm[2:]}", "-sign", str(self._path)]
        if algorithm.startswith("PS"):
            line += ["-sigopt", "rsa_padding_mode:pss", "-sigopt", f"rsa_pss_saltlen:{salt}"]
        signature = subprocess.run(line, check=True, capture_output=True, input=covered.encode()).stdout
        signature = raw(signature) if self._is_curve else signature
        return f"{covered}.{encoded(signature)}"
