"""Who a client is by its certificate, as a listener asks it."""

import ssl
from types import SimpleNamespace

import pytest

from kavka_broker.core.authentication.principal_mapping import parse_rules
from kavka_broker.net.tls import USER_CHARACTERS_MAX, Tls
from tests.support.subjects import certificate, subject, text


def user_by(certificate_der: bytes | None, rules: str = "DEFAULT") -> str | None:
    tls = Tls(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), parse_rules(rules), is_by_certificate=True)
    shown = SimpleNamespace(getpeercert=lambda binary_form: certificate_der)
    transport = SimpleNamespace(get_extra_info=lambda name: shown if name == "ssl_object" else None)
    return tls.user_of(transport)  # type: ignore[arg-type]


def of(*units: str) -> bytes:
    return certificate(subject(*([text("OU", unit)] for unit in units)), has_version=True)


@pytest.mark.parametrize(("characters", "is_user"), [(USER_CHARACTERS_MAX, True), (USER_CHARACTERS_MAX + 1, False)])
def test_a_certificate_names_a_user_of_so_many_characters(*, characters: int, is_user: bool) -> None:
    name = "OU=" + "u" * (characters - 3)
    assert user_by(of(name[3:])) == (name if is_user else None)


def test_a_rule_shortens_a_name_that_is_too_long() -> None:
    shown = of("u" * 5_000, "alice")
    assert user_by(shown) is None
    assert user_by(shown, "RULE:^OU=([^,]+),.*$/$1/") == "alice"


def test_a_client_without_a_certificate_is_anonymous_and_one_of_another_form_nobody() -> None:
    assert user_by(None) == "ANONYMOUS"
    assert user_by(b"0") is None
