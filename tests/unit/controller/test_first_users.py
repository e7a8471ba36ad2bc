"""The users that a new cluster begins with: what is read, what is refused without its password, what is kept."""

from base64 import b64encode
from collections.abc import Sequence

import pytest

from kavka_broker.controller.first_users import first_users
from kavka_broker.controller.format import FormatError, bootstrap_snapshot
from kavka_broker.controller.snapshot_files import read
from kavka_broker.core.authentication.scram import SHA_256, SHA_512, credential_of, salted
from kavka_broker.core.metadata.image.metadata import Metadata

SALT = bytes(range(24))
HASHED = b64encode(salted(SHA_512, "bob-secret", b"other", 8192)).decode()


def users(*texts: str) -> Metadata:
    """The image of a cluster that begins with these users."""
    records = first_users(texts, lambda size: SALT[:size])
    image = Metadata()
    for record in read(bootstrap_snapshot(0, records)):
        image.replay(record)
    return image


def test_a_password_is_salted_and_kept() -> None:
    image = users("SCRAM-SHA-256=[name=alice,password=alice-secret]")
    expected = credential_of(SHA_256, salted(SHA_256, "alice-secret", SALT, 4096), SALT, 4096)
    assert image.credentials.of("alice", SHA_256.number) == expected
    assert image.credentials.iterations() == {"alice": {1: 4096}}


def test_a_salted_password_is_taken_as_it_is() -> None:
    salt = b64encode(b"other").decode()
    image = users(f'SCRAM-SHA-512=[name="bob",iterations=8192,salt="{salt}",saltedpassword="{HASHED}"]')
    expected = credential_of(SHA_512, salted(SHA_512, "bob-secret", b"other", 8192), b"other", 8192)
    assert image.credentials.of("bob", SHA_512.number) == expected


def test_a_user_may_have_both_mechanisms() -> None:
    texts = [f"{mechanism.name}=[name=alice,password=x]" for mechanism in (SHA_256, SHA_512)]
    assert users(*texts).credentials.iterations() == {"alice": {1: 4096, 2: 4096}}


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["alice"], "write SCRAM-SHA-256 or SCRAM-SHA-512="),
        (["PLAIN=[name=alice,password=hidden]"], "write SCRAM-SHA-256 or"),
        (["SCRAM-SHA-256=[password=hidden]"], "give a name"),
        (["SCRAM-SHA-256=[name=alice]"], "either a password or a saltedpassword"),
        ([f"SCRAM-SHA-256=[name=a,password=hidden,salt=AAAA,saltedpassword={HASHED}]"], "either a password or"),
        (["SCRAM-SHA-256=[name=,password=hidden]"], "with a value behind it"),
        ([f"SCRAM-SHA-256=[name={'u' * 257},password=hidden]"], "a name has at most 256 characters"),
        (["SCRAM-SHA-256=[name=a,name=b,password=hidden]"], "once"),
        (["SCRAM-SHA-256=[name=a,colour=hidden]"], "each field is one of"),
        (["SCRAM-SHA-256=[name=a,password=hidden,iterations=4095]"], "iterations are a number from 4096 to 16384"),
        (["SCRAM-SHA-256=[name=a,password=hidden,iterations=many]"], "iterations are a number"),
        (["SCRAM-SHA-256=[name=a,password=hidden,salt=%]"], "base64"),
        ([f"SCRAM-SHA-256=[name=a,saltedpassword={HASHED}]"], "needs the salt"),
        (["SCRAM-SHA-256=[name=a,password=hidden]"] * 2, '"a" is named twice'),
    ],
)
def test_what_is_no_user_is_refused_without_its_password(texts: Sequence[str], words: str) -> None:
    with pytest.raises(FormatError, match=r"^--add-scram: ") as refused:
        first_users(texts, bytes)
    assert words in str(refused.value)
    assert "hidden" not in str(refused.value)
    assert HASHED not in str(refused.value)
