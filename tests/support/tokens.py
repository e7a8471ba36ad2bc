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


class Issuer:
    """One key of RSA, in a new directory."""

    def __init__(self, directory: Path, key_id: str = "first", bits: int = 2048) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.key_id = key_id
        self._path = directory / f"{key_id}.pem"
        subprocess.run(["openssl", "genrsa", "-out", str(self._path), str(bits)], check=True, capture_output=True)

    @property
    def key(self) -> dict[str, Any]:
        """The public key as a set of keys has it."""
        line = ["openssl", "rsa", "-in", str(self._path), "-noout", "-modulus"]
        modulus = subprocess.run(line, check=True, capture_output=True, text=True).stdout.strip().partition("=")[2]
        return {"kty": "RSA", "kid": self.key_id, "use": "sig", "n": encoded(bytes.fromhex(modulus)), "e": "AQAB"}

    def key_set(self, *others: "Issuer") -> bytes:
        return json.dumps({"keys": [issuer.key for issuer in (self, *others)]}).encode()

    def token(self, claims: Mapping[str, Any], algorithm: str = "RS256", **header: Any) -> str:
        """A signed token. `header` adds to its header, or takes out what is None."""
        named = {"alg": algorithm, "typ": "JWT", "kid": self.key_id, **header}
        head = {name: value for name, value in named.items() if value is not None}
        covered = ".".join(encoded(json.dumps(part).encode()) for part in (head, dict(claims)))
        line = ["openssl", "dgst", f"-sha{algorithm[2:]}", "-sign", str(self._path)]
        signature = subprocess.run(line, check=True, capture_output=True, input=covered.encode()).stdout
        return f"{covered}.{encoded(signature)}"
