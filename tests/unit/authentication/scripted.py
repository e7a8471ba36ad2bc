"""The example of RFC 7677, section 3, byte for byte: a login by SCRAM-SHA-256, and a client for any other."""

from base64 import b64decode, b64encode
from hashlib import new
from hmac import digest

from kavka_broker.core.authentication.scram import SHA_256, Credential, Mechanism, credential_of, salted

MECHANISM, PASSWORD = SHA_256, "pencil"
SALT = b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
NONCE = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
FIRST = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
FIRST_ANSWER = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
LAST = b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
LAST_ANSWER = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def kept(mechanism: Mechanism, password: str = PASSWORD) -> Credential:
    """What is kept of a password."""
    return credential_of(mechanism, salted(mechanism, password, SALT, 4096), SALT, 4096)


def last(mechanism: Mechanism, password: str, first: bytes, answer: bytes, unproved: str | None = None) -> bytes:
    """A client's last message. `unproved` takes the place of what it covers, without the proof."""
    fields = dict(field.split("=", 1) for field in answer.decode().split(","))
    header, bare = first.decode().split(",", 2)[:2], first.decode().split(",", 2)[2]
    text = unproved or f"c={b64encode(','.join([*header, '']).encode()).decode()},r={fields['r']}"
    key = salted(mechanism, password, b64decode(fields["s"]), int(fields["i"]))
    client_key = digest(key, b"Client Key", mechanism.hash)
    covered = f"{bare},{answer.decode()},{text}".encode()
    signature = digest(new(mechanism.hash, client_key).digest(), covered, mechanism.hash)
    proof = bytes(left ^ right for left, right in zip(client_key, signature, strict=True))
    return f"{text},p={b64encode(proof).decode()}".encode()
