"""The users of certificates by the rules of KIP-371."""

import pytest

from kavka_broker.core.authentication.principal_mapping import RuleError, parse_rules, user_of

NAME = "CN=Alice.B,O=Streams,C=DE"


def test_the_default_is_the_whole_subject() -> None:
    assert user_of(NAME, parse_rules("DEFAULT")) == NAME


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
    assert user_of(NAME, parse_rules(rules)) == user


@pytest.mark.parametrize("text", ["NONE", "RULE:a/b", "RULE:(/x/", "RULE:a/$1/", "DEFAULT DEFAULT", "RULE:a/b/X"])
def test_a_text_that_is_no_rule_is_refused(text: str) -> None:
    with pytest.raises(RuleError):
        parse_rules(text)
