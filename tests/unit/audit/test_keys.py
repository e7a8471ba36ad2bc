"""Keys of the audit trail: who signs, who can only verify, and what is said of a file that is no key."""

import sys

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from kavka_broker.core.audit.chain import Chain
from kavka_broker.core.audit.cloud_events import entry_of, headers_of
from kavka_broker.core.audit.keys import HmacKey, KeyProblemError, signing_key, verifying_key
from kavka_broker.core.audit.verification import Fault, State, verify
from tests.unit.audit.trails import KEY, Trail

PRIVATE = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
PRIVATE_PEM = PRIVATE.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
PUBLIC_PEM = PRIVATE.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def test_who_has_the_public_key_verifies_and_cannot_sign() -> None:
    private, public = signing_key(PRIVATE_PEM), verifying_key(PUBLIC_PEM)
    assert private.id == public.id
    assert public.verifies(b"h" * 32, private.sign(b"h" * 32))
    assert not public.verifies(b"g" * 32, private.sign(b"h" * 32))
    assert not public.verifies(b"h" * 32, b"")
    assert not hasattr(public, "sign")
    with pytest.raises(KeyProblemError, match="is a public key, which signs nothing"):
        signing_key(PUBLIC_PEM)


def test_a_trail_signed_by_ed25519_is_verified_by_the_public_key() -> None:
    trail = Trail()
    for node in trail.nodes:
        node.key = signing_key(PRIVATE_PEM)
    trail.run(70)
    trail.entries = [entry_of(headers_of(entry), entry.value) for entry in trail.entries]
    assert {found.state for found in trail.verdicts([verifying_key(PUBLIC_PEM)]).values()} == {State.SOUND}
    by_secret = trail.verdicts([KEY])["1-1"]
    assert (by_secret.state, by_secret.unknown_keys) == (State.UNSIGNED, [verifying_key(PUBLIC_PEM).id])
    other = Ed25519PrivateKey.from_private_bytes(bytes(32)).public_key()
    by_other = trail.verdicts([verifying_key(other.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))])
    assert by_other["1-1"].state is State.UNSIGNED


def test_a_signature_of_a_secret_is_none_of_a_public_key_of_that_id() -> None:
    head = Chain("1-7", HmacKey(b"s" * 32)).head(0)
    assert verify([head], [HmacKey(b"s" * 32)]).state is State.SOUND
    forged = type(head)(
        **{**{name: getattr(head, name) for name in head.__slots__}, "key_id": verifying_key(PUBLIC_PEM).id}
    )
    damage = verify([forged], [verifying_key(PUBLIC_PEM)]).damage
    assert damage is not None
    assert damage.fault is Fault.UNSIGNED


def test_an_id_is_the_same_wherever_it_is_told() -> None:
    """Heads of years before name it."""
    assert HmacKey(bytes(range(32))).id == "146ae41795c91548"
    assert verifying_key(PUBLIC_PEM).id == "56475aa75463474c"


def test_no_byte_of_a_key_is_in_its_words() -> None:
    assert repr(HmacKey(b"secret" * 6)) == f"HmacKey({HmacKey(b'secret' * 6).id})"
    assert repr(signing_key(PRIVATE_PEM)) == f"Ed25519Private({signing_key(PRIVATE_PEM).id})"


@pytest.mark.parametrize(
    ("file", "words"),
    [
        (b"short", "has 5 bytes; a key has 32 or more"),
        (PRIVATE_PEM[:70], "is no key in PEM that can be read"),
        (PUBLIC_PEM[:70], "is no key in PEM that can be read"),
        (
            PRIVATE.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"p")),
            "without a passphrase",
        ),
        (
            generate_private_key(65537, 2048).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
            "is a key of another kind than Ed25519",
        ),
    ],
    ids=["short", "a cut private key", "a cut public key", "a passphrase", "RSA"],
)
def test_a_file_that_is_no_key_is_told_what_it_lacks(file: bytes, words: str) -> None:
    with pytest.raises(KeyProblemError, match=words):
        signing_key(file)


def test_without_the_package_a_key_in_pem_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.exceptions", None)
    with pytest.raises(KeyProblemError, match=r"takes the package cryptography, .* \(pip install"):
        verifying_key(PUBLIC_PEM)
    assert verifying_key(b"k" * 32) == HmacKey(b"k" * 32)
