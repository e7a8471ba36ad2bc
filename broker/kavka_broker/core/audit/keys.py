"""Keys of the audit trail: what signs the head of a chain, and what tells that it was signed.

| file | signs | verifies | whoever verifies |
|---|---|---|---|
| 32 bytes or more | HMAC with SHA-256 | the same bytes | could forge: one key for both |
| PEM, a private key of Ed25519 | Ed25519 | the same file, or its public key | cannot forge with the public key |

A key has an id, which heads name, so that several keys can be known at once: those of nodes, and those of years before.
The id of a public key is the beginning of its hash. Of a secret it is an HMAC, which tells no more of the secret than a
signature does.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from hmac import compare_digest, digest
from typing import Any, Final, Protocol

KEY_BYTES_MIN: Final = 32
"""The least length of a secret: that of the hash."""
ID_BYTES: Final = 8
ID_TEXT: Final = b"kavka.audit.key.id"
PEM_BEGIN: Final = b"-----BEGIN "
SIGNATURE_BYTES: Final = (32, 64)
"""The lengths of signatures: HMAC with SHA-256, and Ed25519."""
LACK: Final = "takes the package cryptography, as it is a key in PEM (pip install 'kavka-broker[ed25519]')"


class KeyProblemError(Exception):
    """A file holds no key of the audit trail; the words say why, without a byte of it."""


class VerifyingKey(Protocol):
    """A key that tells whether a hash was signed by it."""

    @property
    def id(self) -> str:
        """The id, in hexadecimal digits."""
        ...

    def verifies(self, hash_: bytes, signature: bytes) -> bool:
        """Whether this is the key's signature of a hash."""
        ...


class SigningKey(VerifyingKey, Protocol):
    """A key that signs."""

    def sign(self, hash_: bytes) -> bytes:
        """Return the signature of a hash."""
        ...


@dataclass(frozen=True, slots=True)
class HmacKey:
    """A secret that signs and verifies."""

    secret: bytes

    def __post_init__(self) -> None:
        assert len(self.secret) >= KEY_BYTES_MIN, "a key is at least as long as the hash"

    def __repr__(self) -> str:
        """Tell the id, and nothing of the secret."""
        return f"HmacKey({self.id})"

    @property
    def id(self) -> str:
        """The id, in hexadecimal digits."""
        return digest(self.secret, ID_TEXT, "sha256")[:ID_BYTES].hex()

    def sign(self, hash_: bytes) -> bytes:
        """Return the signature of a hash: HMAC with SHA-256, 32 bytes."""
        return digest(self.secret, hash_, "sha256")

    def verifies(self, hash_: bytes, signature: bytes) -> bool:
        """Whether this is the key's signature of a hash."""
        return compare_digest(self.sign(hash_), signature)


@dataclass(frozen=True, slots=True)
class Ed25519Public:
    """A public key: who has it verifies, and cannot sign."""

    public: Any  # of the package cryptography, which a broker without such a key does not need
    id: str

    def verifies(self, hash_: bytes, signature: bytes) -> bool:
        """Whether this is the key's signature of a hash."""
        from cryptography.exceptions import InvalidSignature

        try:
            self.public.verify(signature, hash_)
        except InvalidSignature:
            return False
        return True


@dataclass(frozen=True, slots=True)
class Ed25519Private(Ed25519Public):
    """A private key, which signs."""

    private: Any

    def __repr__(self) -> str:
        """Tell the id alone."""
        return f"Ed25519Private({self.id})"

    def sign(self, hash_: bytes) -> bytes:
        """Return the signature of a hash: Ed25519, 64 bytes."""
        signature: bytes = self.private.sign(hash_)
        return signature


def signing_key(data: bytes) -> SigningKey:
    """Return the key of a node from its file. Raises KeyProblemError."""
    key = verifying_key(data)
    if isinstance(key, HmacKey | Ed25519Private):
        return key
    raise KeyProblemError("is a public key, which signs nothing; a node takes the private one")


def verifying_key(data: bytes) -> VerifyingKey:
    """Return the key of one who verifies from a file. Raises KeyProblemError."""
    data = data.strip()
    if data.startswith(PEM_BEGIN):
        return _of_pem(data)
    if len(data) < KEY_BYTES_MIN:
        words = f"has {len(data)} bytes; a key has {KEY_BYTES_MIN} or more (openssl rand -hex 32 makes one)"
        raise KeyProblemError(words)
    return HmacKey(data)


def _of_pem(data: bytes) -> VerifyingKey:
    try:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
    except ImportError:
        raise KeyProblemError(LACK) from None
    try:
        if b"PUBLIC KEY" in data.splitlines()[0]:
            found: Any = serialization.load_pem_public_key(data)
        else:
            found = serialization.load_pem_private_key(data, None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise KeyProblemError(
            "is no key in PEM that can be read; openssl genpkey -algorithm ed25519 makes one, without a passphrase"
        ) from None
    if isinstance(found, Ed25519PublicKey):
        return Ed25519Public(found, _id_of(found))
    if isinstance(found, Ed25519PrivateKey):
        return Ed25519Private(found.public_key(), _id_of(found.public_key()), found)
    raise KeyProblemError("is a key of another kind than Ed25519 (openssl genpkey -algorithm ed25519)")


def _id_of(public: Any) -> str:
    return sha256(public.public_bytes_raw()).digest()[:ID_BYTES].hex()


def key_named(keys: Sequence[VerifyingKey], key_id: str) -> VerifyingKey | None:
    """Return the key of an id, of those that are known."""
    return next((key for key in keys if key.id == key_id), None)
