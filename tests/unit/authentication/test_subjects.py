"""The users of certificates: subjects as openssl writes them by RFC 2253, and the rules of KIP-371."""

import ssl
import subprocess
from pathlib import Path

import pytest

from kavka_broker.core.authentication.subjects import RuleError, distinguished_name, parse_rules, user_of

SUBJECT = ((("countryName", "DE"),), (("organizationName", "Streams"),), (("commonName", "Alice.B"),))
NAME = "CN=Alice.B,O=Streams,C=DE"


def test_the_default_is_the_whole_subject() -> None:
    assert user_of(SUBJECT, parse_rules("DEFAULT")) == NAME


@pytest.mark.parametrize(
    ("rules", "user"),
    [
        ("RULE:^CN=(.*?),O=(.*?),.*$/$1@$2/", "Alice.B@Streams"),
        ("RULE:^CN=(.*?),.*$/$1/L", "alice.b"),
        ("RULE:^CN=(.*?),.*$/$1/U, DEFAULT", "ALICE.B"),
        ("RULE:^OU=(.*)$/$1/,DEFAULT", NAME),
        ("RULE:^CN=(.*?),.*$/a\\/b-$1/", "a\\/b-Alice.B"),
        ("RULE:CN=Alice/x/", None),
        ("", None),
    ],
)
def test_the_first_rule_that_is_about_a_subject_gives_the_user(rules: str, user: str | None) -> None:
    assert user_of(SUBJECT, parse_rules(rules)) == user


@pytest.mark.parametrize("text", ["NONE", "RULE:a/b", "RULE:(/x/", "RULE:a/$1/", "DEFAULT DEFAULT", "RULE:a/b/X"])
def test_a_text_that_is_no_rule_is_refused(text: str) -> None:
    with pytest.raises(RuleError):
        parse_rules(text)


@pytest.mark.parametrize(
    "subject",
    [
        "/CN=client",
        "/C=DE/ST=Berlin/L=Mitte/O=A, B and C/OU=streams+events/CN=x",
        '/O=say "yes"; or <no>/CN= spaced ',
        "/DC=com/DC=example/UID=7/CN=#hash",
        "/O=back\\\\slash/CN=a=b",
    ],
)
def test_a_subject_is_written_as_openssl_writes_it(subject: str, tmp_path: Path) -> None:
    line = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    line += ["-subj", subject, "-keyout", "a.key", "-out", "a.crt"]
    subprocess.run(line, cwd=tmp_path, check=True, capture_output=True)
    shown = ["openssl", "x509", "-in", "a.crt", "-noout", "-subject", "-nameopt", "RFC2253"]
    said = subprocess.run(shown, cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    certificate = ssl._ssl._test_decode_cert(str(tmp_path / "a.crt"))  # type: ignore[attr-defined]
    assert distinguished_name(certificate["subject"]) == said.removeprefix("subject=").rstrip("\n")
