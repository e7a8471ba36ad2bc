"""Tokens: whom they name, and each way in which one names nobody. Keys and signatures are of openssl and RFC 7515."""

import contextlib
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kavka_broker.core.authentication.auth_metrics import Authentications
from kavka_broker.core.authentication.login import Login, Proof
from kavka_broker.core.authentication.oauthbearer import MESSAGE_BYTES_MAX, PAIRS_MAX, REFUSAL, Exchange
from kavka_broker.core.authentication.sasl import SaslSettings
from kavka_broker.core.authentication.signing_keys import EDDSA, ES, KeySetError, SigningKey, decode, parse_keys
from kavka_broker.core.authentication.token_claims import (
    CURVE_KEYS_TRIED_MAX,
    KEYS_TRIED_MAX,
    TOKEN_BYTES_MAX,
    Named,
    TokenError,
    TokenJudge,
    TokenSettings,
)
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from tests.support.tokens import Issuer, encoded

NOW = 1_800_000_000
NOW_MS = NOW * 1000
CLAIMS: dict[str, Any] = {"sub": "alice", "iss": "https://issuer", "aud": "kafka", "iat": NOW - 60, "exp": NOW + 600}
EXPECTED = TokenSettings("file:///keys", "https://issuer", ("kafka", "other"))
#: RFC 7515, appendix A.2.
MODULUS = (
    "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yR"
    "T-SFd2lZS-pCgNMs"
    "D1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2"
    "R2CapHg665xsmtdV"
    "MTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ"
)
COVERED = (
    b"eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19"
    b"yb290Ijp0cnVlfQ"
)
SIGNATURE = (
    "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9"
    "uJdbF9CUAr7t1dnZ"
    "cAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_d"
    "O--xi12jzDwusC-e"
    "OkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw"
)


@pytest.fixture(scope="module")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Issuer:
    return Issuer(tmp_path_factory.mktemp("issuer"))


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Issuer:
    """Another issuer, which names its key as the first does."""
    return Issuer(tmp_path_factory.mktemp("stranger"))


@pytest.fixture(scope="module")
def of_curve(tmp_path_factory: pytest.TempPathFactory) -> Issuer:
    """An issuer with a key of P-256."""
    return Issuer(tmp_path_factory.mktemp("curve"), "curve", curve="P-256")


@pytest.fixture(scope="module")
def of_curves(tmp_path_factory: pytest.TempPathFactory, of_curve: Issuer) -> list[Issuer]:
    """Issuers with keys of each curve."""
    directory = tmp_path_factory.mktemp("curves")
    return [of_curve, *(Issuer(directory, name, curve=name) for name in ("P-384", "P-521", "Ed25519"))]


def judge(issuer: Issuer, settings: TokenSettings = EXPECTED) -> TokenJudge:
    return TokenJudge(settings, parse_keys(issuer.key_set()))


def without(*names: str) -> dict[str, Any]:
    return {name: value for name, value in CLAIMS.items() if name not in names}


def test_the_signature_of_the_rfc_is_right_and_each_of_its_bytes_counts() -> None:
    (key,) = parse_keys(json.dumps({"keys": [{"kty": "RSA", "n": MODULUS, "e": "AQAB"}]}).encode())
    signature = decode(SIGNATURE)
    assert signature is not None
    assert key.has_signed("RS256", COVERED, signature)
    assert not key.has_signed("RS384", COVERED, signature)
    assert not key.has_signed("RS256", COVERED + b" ", signature)
    for place in range(len(signature)):
        changed = signature[:place] + bytes([signature[place] ^ 1]) + signature[place + 1 :]
        assert not key.has_signed("RS256", COVERED, changed)
    shifted = (int.from_bytes(signature, "big") + key.public.public_numbers().n).to_bytes(257, "big")
    assert not any(
        key.has_signed("RS256", COVERED, other) for other in (b"", signature[1:], b"\0" + signature, shifted)
    )


@pytest.mark.parametrize("algorithm", ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"])
@pytest.mark.parametrize("key_id", ["first", None])
def test_a_token_names_its_user_until_it_expires(issuer: Issuer, algorithm: str, key_id: str | None) -> None:
    token = issuer.token(CLAIMS, algorithm, kid=key_id)
    assert judge(issuer).judge(token, NOW_MS) == Named("alice", (NOW + 600) * 1000)


@pytest.mark.parametrize("is_named", [True, False])
def test_a_token_is_signed_by_a_key_of_any_curve(of_curves: list[Issuer], *, is_named: bool) -> None:
    first, *others = of_curves
    found = TokenJudge(EXPECTED, parse_keys(first.key_set(*others)))
    for issuer in of_curves:
        named = issuer.key_id if is_named else None
        assert found.judge(issuer.token(CLAIMS, kid=named), NOW_MS).user == "alice"
        for other in {*of_curves} - {issuer}:
            with pytest.raises(TokenError, match="its signature is wrong"):
                found.judge(issuer.token(CLAIMS, alg=other.algorithm), NOW_MS)
            with pytest.raises(TokenError, match="its signature is wrong"):
                found.judge(issuer.token(CLAIMS, kid=other.key_id), NOW_MS)


@pytest.mark.parametrize(
    ("claims", "words"),
    [
        (without("exp"), "when it was issued and when it expires"),
        (without("iat"), "when it was issued and when it expires"),
        ({**CLAIMS, "exp": NOW - 30}, "it has expired"),
        ({**CLAIMS, "exp": True}, "its exp is no time"),
        ({**CLAIMS, "exp": "soon"}, "its exp is no time"),
        ({**CLAIMS, "exp": 1e13}, "its exp is no time"),
        ({**CLAIMS, "exp": -1}, "its exp is no time"),
        ({**CLAIMS, "nbf": NOW + 31}, "does not hold yet"),
        ({**CLAIMS, "iss": "https://issuer/"}, "another issuer"),
        (without("iss"), "another issuer"),
        ({**CLAIMS, "aud": "mail"}, "another audience"),
        ({**CLAIMS, "aud": ["mail", 7]}, "another audience"),
        ({**CLAIMS, "aud": {"kafka": 1}}, "another audience"),
        (without("aud"), "another audience"),
        (without("sub"), "its sub names no user"),
        ({**CLAIMS, "sub": "  "}, "its sub names no user"),
        ({**CLAIMS, "sub": 7}, "its sub names no user"),
        ({**CLAIMS, "sub": "u" * 257}, "its sub has more than 256 characters"),
    ],
)
def test_what_a_token_must_say(issuer: Issuer, claims: dict[str, Any], words: str) -> None:
    with pytest.raises(TokenError, match=words):
        judge(issuer).judge(issuer.token(claims), NOW_MS)


@pytest.mark.parametrize(
    "claims",
    [
        {**CLAIMS, "exp": NOW - 29},
        {**CLAIMS, "nbf": NOW + 30},
        {**CLAIMS, "aud": ["mail", "other"]},
        {**CLAIMS, "sub": " alice\n"},
    ],
)
def test_clocks_may_differ_by_the_skew_and_one_audience_is_enough(issuer: Issuer, claims: dict[str, Any]) -> None:
    assert judge(issuer).judge(issuer.token(claims), NOW_MS).user == "alice"


def test_spaces_around_a_user_count_for_nothing(issuer: Issuer) -> None:
    longest = "é" * 256
    assert judge(issuer).judge(issuer.token({**CLAIMS, "sub": f"  {longest}\n"}), NOW_MS).user == longest


def test_where_no_audience_is_expected_a_token_for_one_is_refused(issuer: Issuer) -> None:
    lenient = judge(issuer, TokenSettings("file:///keys", user_claim="email"))
    token = issuer.token({**without("aud", "iss"), "email": "a@b"})
    assert lenient.judge(token, NOW_MS).user == "a@b"
    with pytest.raises(TokenError, match="another audience"):
        lenient.judge(issuer.token(CLAIMS), NOW_MS)


def test_a_token_that_nobody_trusted_has_signed(issuer: Issuer, stranger: Issuer) -> None:
    claims = encoded(json.dumps(CLAIMS).encode())
    none, twice = (encoded(head) + f".{claims}." for head in (b'{"alg":"none"}', b'{"alg":"none","alg":"RS256"}'))
    shared = encoded(b'{"alg":"HS256","kid":"first"}') + f".{claims}." + encoded(b"x" * 32)
    right = issuer.token(CLAIMS)
    other_claims = right.split(".")[0] + "." + encoded(json.dumps({**CLAIMS, "sub": "root"}).encode())
    found = judge(issuer)
    for token, words in {
        none: "it is not signed by RS256",
        shared: "it is not signed by RS256",
        stranger.token(CLAIMS): "its signature is wrong",
        f"{other_claims}.{right.split('.')[2]}": "its signature is wrong",
        issuer.token(CLAIMS, crit=["exp"]): "extensions",
        issuer.token(CLAIMS, alg="RS512"): "its signature is wrong",
        right.rpartition(".")[0]: "it has no signature",
        right + "=": "it has no signature",
        right + ".x": "it has no signature",
        "": "its header",
        "[]." * 20_000: "its header",
        "x" * (TOKEN_BYTES_MAX + 1): "longer",
        encoded(b"[" * 40_000) + "..": "its header",
        twice: "its header",
    }.items():
        with pytest.raises(TokenError, match=words):
            found.judge(token, NOW_MS)


def test_a_key_that_is_not_known_is_asked_for(issuer: Issuer) -> None:
    asked = list[bool]()
    found = TokenJudge(EXPECTED, (), lambda: asked.append(True))
    with pytest.raises(TokenError, match="a key that is not known"):
        found.judge(issuer.token(CLAIMS), NOW_MS)
    assert asked == [True]


@given(st.text(max_size=60) | st.binary(max_size=60).map(encoded))
def test_no_text_that_is_no_token_names_anybody(text: str) -> None:
    with pytest.raises(TokenError):
        TokenJudge(EXPECTED).judge(text, NOW_MS)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(st.fixed_dictionaries({}, optional={"alg": JSON | st.just("RS256"), "kid": JSON, "crit": JSON}))
def test_no_header_of_a_stranger_is_more_than_refused(header: dict[str, object]) -> None:
    with pytest.raises(TokenError):
        TokenJudge(EXPECTED).judge(f"{encoded(json.dumps(header).encode())}.{encoded(b'{}')}.{encoded(b'x')}", NOW_MS)


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(("exp", "iat", "nbf", "iss", "aud", "sub"), JSON)))
def test_no_claims_of_an_issuer_are_more_than_refused(claims: dict[str, object]) -> None:
    """The issuer is trusted, and may be wrong all the same."""
    judge = TokenJudge(EXPECTED)
    with contextlib.suppress(TokenError):
        assert judge.named(json.loads(json.dumps(CLAIMS | claims), parse_constant=str), NOW_MS / 1000).user


@pytest.mark.parametrize(
    "text", [b"", b"[]", b"{}", b'{"keys":{}}', b'{"keys":[]}', b'{"keys":[1,{"kty":"EC"}]}', b"\xff"]
)
def test_what_is_no_set_of_keys(text: bytes) -> None:
    with pytest.raises(KeySetError):
        parse_keys(text)


def test_keys_that_cannot_be_used_are_left_out(issuer: Issuer, tmp_path: Any) -> None:
    weak = Issuer(tmp_path, "weak", bits=1024).key
    key = issuer.key
    others = [{**key, "use": "enc"}, {**key, "alg": "ES256"}, {**key, "e": "AQ"}, {**key, "kid": 1}, {**key, "n": "!"}]
    (left,) = parse_keys(json.dumps({"keys": [weak, *others, key]}).encode())
    assert left.key_id == "first"


def first(token: str, user: str = "", pairs: str = "") -> bytes:
    return f"n,{f'a={user}' if user else ''},\x01auth=Bearer {token}\x01{pairs}\x01".encode()


def login(issuer: Issuer, counts: Authentications, session_ms_max: int = 0) -> Login:
    found = Login(
        SaslSettings(("OAUTHBEARER",), tokens=judge(issuer), session_ms_max={"OAUTHBEARER": session_ms_max}), counts
    )
    found.choose("OAUTHBEARER", 1)
    return found


def proved(found: Login, message: bytes) -> Proof:
    return found.authenticate(message, lambda *_: None, lambda: "", 1, NOW_MS)


@pytest.mark.parametrize("message", [("",), ("alice",), ("", "trace=1\x01")])
def test_a_token_logs_in(issuer: Issuer, message: tuple[str, ...]) -> None:
    counts = Authentications()
    assert proved(login(issuer, counts), first(issuer.token(CLAIMS), *message)) == Proof(b"", "alice")
    assert counts == Authentications(successful=1)


def test_a_refused_token_is_answered_and_the_next_message_fails_whatever_it_is(issuer: Issuer) -> None:
    for second in (b"\x01", first(issuer.token(CLAIMS))):
        counts = Authentications()
        found = login(issuer, counts)
        assert proved(found, first(issuer.token({**CLAIMS, "exp": 1}))) == Proof(REFUSAL.encode(), None)
        assert found.refusal == "it has expired"
        with pytest.raises(BrokerError) as refused:
            proved(found, second)
        assert (refused.value.code, refused.value.message) == (ErrorCode.SASL_AUTHENTICATION_FAILED, REFUSAL)
        assert counts == Authentications(failed=1)


@pytest.mark.parametrize(
    "message",
    [b"", b"\x01", b"n,,\x01\x01", b"n,,\x01auth=Basic eA\x01\x01", b"y,,\x01auth=Bearer e\x01\x01",
     b"n,,\x01auth=Bearer e\x01auth=Bearer f\x01\x01", b"n,,\x01auth=Bearer e\x01",
     b"n,a=\x01,\x01auth=Bearer e\x01\x01", b"\xff"],
)  # fmt: skip
def test_what_is_no_first_message(issuer: Issuer, message: bytes) -> None:
    with pytest.raises(BrokerError, match="invalid credentials with SASL mechanism OAUTHBEARER"):
        Exchange(judge(issuer), NOW_MS).take(message)


def with_pairs(count: int, value: str = "y") -> bytes:
    """A first message with pairs beside that of the token, each with a name of its own."""
    names = (f"{chr(97 + number // 26 % 26)}{chr(97 + number % 26)}" for number in range(count))
    return first("a.b.c", pairs="".join(f"{name}={value}\x01" for name in names))


@pytest.mark.parametrize("count", [1, PAIRS_MAX - 1])
def test_pairs_beside_the_token_are_passed_over(issuer: Issuer, count: int) -> None:
    assert Exchange(judge(issuer), NOW_MS).take(with_pairs(count)) == (REFUSAL.encode(), None)


@pytest.mark.parametrize(
    "message", [with_pairs(PAIRS_MAX), with_pairs(100_000), with_pairs(1, "y" * MESSAGE_BYTES_MAX)]
)
def test_a_message_of_a_stranger_is_read_up_to_a_bound(issuer: Issuer, message: bytes) -> None:
    """One of 100,000 pairs held the loop for 87 ms before any login."""
    with pytest.raises(BrokerError, match="invalid credentials"):
        Exchange(judge(issuer), NOW_MS).take(message)


@pytest.mark.parametrize(
    ("algorithm", "most"),
    [("RS256", KEYS_TRIED_MAX), (EDDSA, KEYS_TRIED_MAX), *((name, CURVE_KEYS_TRIED_MAX) for name in ES)],
)
def test_a_token_is_held_against_so_many_keys(
    issuer: Issuer, of_curves: list[Issuer], monkeypatch: pytest.MonkeyPatch, algorithm: str, most: int
) -> None:
    tried: list[str] = []

    def has_signed(key: SigningKey, *_: object) -> bool:
        assert algorithm in key.algorithms
        tried.append(key.key_id)
        return False

    monkeypatch.setattr(SigningKey, "has_signed", has_signed)
    keys = parse_keys(issuer.key_set(*of_curves))
    many = TokenJudge(EXPECTED, tuple(replace(key, key_id=str(number)) for number in range(50) for key in keys))
    with pytest.raises(TokenError, match="signature is wrong"):
        many.judge(".".join(map(encoded, (f'{{"alg":"{algorithm}"}}'.encode(), b"{}", b"x"))), NOW_MS)
    assert tried == list(map(str, range(most)))


def test_a_key_signs_by_the_algorithms_of_its_kind_and_by_its_own_alone(issuer: Issuer, of_curve: Issuer) -> None:
    both = TokenJudge(EXPECTED, parse_keys(issuer.key_set(of_curve)))
    right = of_curve.token(CLAIMS, "ES256")
    assert both.judge(right, NOW_MS).user == "alice"
    assert both.judge(of_curve.token(CLAIMS, "ES256", kid=None), NOW_MS).user == "alice"
    one = json.dumps({"keys": [{**issuer.key, "alg": "PS256"}]}).encode()
    assert TokenJudge(EXPECTED, parse_keys(one)).judge(issuer.token(CLAIMS, "PS256"), NOW_MS).user == "alice"
    for token in (
        issuer.token(CLAIMS, "RS256", kid="curve"),
        issuer.token(CLAIMS, "RS256", alg="PS256"),
        issuer.token(CLAIMS, "PS256", alg="RS256"),
        of_curve.token({**CLAIMS, "sub": "root"}, "ES256").rpartition(".")[0] + "." + right.rpartition(".")[2],
    ):
        with pytest.raises(TokenError, match="its signature is wrong"):
            both.judge(token, NOW_MS)
    with pytest.raises(TokenError, match="its signature is wrong"):
        TokenJudge(EXPECTED, parse_keys(one)).judge(issuer.token(CLAIMS), NOW_MS)


@pytest.mark.parametrize("salt", ["0", "20", "max"])
def test_a_salt_of_another_length_than_the_hash_is_none_of_tokens(issuer: Issuer, salt: str) -> None:
    """RFC 7518, 3.5."""
    with pytest.raises(TokenError, match="its signature is wrong"):
        judge(issuer).judge(issuer.token(CLAIMS, "PS256", salt=salt), NOW_MS)


def test_each_byte_of_a_signature_by_pss_counts(issuer: Issuer) -> None:
    (key,) = judge(issuer).keys
    covered, _, text = issuer.token(CLAIMS, "PS256").rpartition(".")
    signature = decode(text)
    assert signature is not None
    assert key.has_signed("PS256", covered.encode(), signature)
    for place in range(len(signature)):
        changed = signature[:place] + bytes([signature[place] ^ 1]) + signature[place + 1 :]
        assert not key.has_signed("PS256", covered.encode(), changed)
    assert not key.has_signed("PS384", covered.encode(), signature)


@pytest.mark.parametrize("bits", [2049, 2055, 2056])
def test_sizes_of_keys_that_are_no_whole_bytes(tmp_path: Any, bits: int) -> None:
    odd = Issuer(tmp_path, bits=bits)
    for algorithm in ("RS256", "PS256", "PS512"):
        assert judge(odd).judge(odd.token(CLAIMS, algorithm), NOW_MS).user == "alice"


@pytest.mark.parametrize("scope", [None, "read", "read write", ["read", "write"], [], 7, {"a": 1}])
def test_scopes_are_passed_over(issuer: Issuer, scope: object) -> None:
    assert judge(issuer).judge(issuer.token({**CLAIMS, "scope": scope}), NOW_MS).user == "alice"


@pytest.mark.parametrize("scope", ["", " ", [""], ["read", "read"], ["read", " read"], [7], [None]])
def test_scopes_that_are_none(issuer: Issuer, scope: object) -> None:
    with pytest.raises(TokenError, match="its scope has an empty scope, or one twice"):
        judge(issuer).judge(issuer.token({**CLAIMS, "scope": scope}), NOW_MS)
    other = replace(EXPECTED, scope_claim="scp")
    assert judge(issuer, other).judge(issuer.token({**CLAIMS, "scope": scope}), NOW_MS).user == "alice"


@pytest.mark.parametrize(
    ("bits", "exponent", "is_taken"),
    [(4_096, 65_537, True), (4_096, 65_539, False), (4_104, 65_537, False), (16_384, 65_537, False)],
)
def test_keys_that_would_hold_the_loop_are_left_out(bits: int, exponent: int, *, is_taken: bool) -> None:
    modulus = ((1 << (bits - 1)) | 1).to_bytes(bits // 8, "big")
    key = {"kty": "RSA", "n": encoded(modulus), "e": encoded(exponent.to_bytes(3, "big"))}
    with contextlib.nullcontext() if is_taken else pytest.raises(KeySetError):
        assert len(parse_keys(json.dumps({"keys": [key]}).encode())) == 1


def test_another_user_cannot_be_asked_for(issuer: Issuer) -> None:
    with pytest.raises(BrokerError, match=r"authorization id \(bob\) that is different .* \(alice\)"):
        proved(login(issuer, Authentications()), first(issuer.token(CLAIMS), "bob"))


@pytest.mark.parametrize(
    ("session_ms_max", "expires", "lifetime_ms"),
    [(0, 600, 600_000), (60_000, 600, 60_000), (900_000, 600, 600_000), (60_000, -10, 0)],
)
def test_a_session_ends_with_its_token_at_the_latest(
    issuer: Issuer, session_ms_max: int, expires: int, lifetime_ms: int
) -> None:
    found = login(issuer, Authentications(), session_ms_max)
    proved(found, first(issuer.token({**CLAIMS, "exp": NOW + expires})))
    session = found.session_of("alice", 5.0, NOW_MS)
    assert session is not None
    assert (session.lifetime_ms, session.ends_ms) == (lifetime_ms, 5.0 + lifetime_ms)
