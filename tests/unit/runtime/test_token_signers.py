"""The keys of an issuer: read at the start and again, kept where nothing usable comes, and asked for when one lacks."""

import asyncio
import sys
import threading
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import pytest

from kavka_broker.core.authentication import signing_keys
from kavka_broker.core.authentication.token_claims import TokenError, TokenJudge, TokenSettings
from kavka_broker.core.authentication.token_keys import VALIDATOR
from kavka_broker.runtime import token_signers
from kavka_broker.runtime.addresses import StartError
from kavka_broker.runtime.clock import SystemClock
from kavka_broker.runtime.environment import REAL
from kavka_broker.runtime.metrics import listener_samples
from kavka_broker.runtime.token_signers import BYTES_MAX, UNKNOWN_SECONDS_MIN, TokenSigners, fetch
from tests.support.in_process import running
from tests.support.pages import dripping, serving
from tests.support.tokens import Issuer
from tests.support.waiting import turns, until

URL = "https://issuer/keys"
CLAIMS = {"sub": "alice", "iat": 1, "exp": 10**9}
NOW_MS = 10_000


@pytest.fixture(scope="module")
def issuers(tmp_path_factory: pytest.TempPathFactory) -> list[Issuer]:
    directory = tmp_path_factory.mktemp("issuers")
    return [Issuer(directory, key_id) for key_id in ("old", "new")]


class SetClock(SystemClock):
    """A clock that shows what it was set to."""

    ms = 0.0

    def monotonic_ms(self) -> float:
        return self.ms


class Server:
    """Answers with what it has, or an error."""

    def __init__(self, answer: bytes | Exception) -> None:
        self.answer = answer
        self.asked = 0

    def __call__(self, url: str) -> bytes:
        assert url == URL
        self.asked += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def play(
    server: Callable[[str], bytes],
    check: Callable[[TokenJudge], object],
    refresh_ms: int,
    url: str = URL,
    unknown_seconds_min: float = UNKNOWN_SECONDS_MIN,
) -> None:
    """Run with a server until something has been checked."""

    async def run() -> None:
        judge = TokenJudge(TokenSettings(url, refresh_ms=refresh_ms, retry_ms=1, retry_ms_max=2))
        signers = TokenSigners(judge, REAL.clock, server, unknown_seconds_min)
        await signers.start()
        await signers.first_read()
        try:
            waiting = check(judge)
            if asyncio.iscoroutine(waiting):
                await waiting
        finally:
            await signers.stop()

    asyncio.run(run())


def user(judge: TokenJudge, issuer: Issuer) -> str:
    """Whom a token of the issuer names, or why none."""
    try:
        return judge.judge(issuer.token(CLAIMS), NOW_MS).user
    except TokenError as error:
        return str(error)


def test_keys_are_read_again_and_the_old_ones_hold_until_usable_ones_come(issuers: list[Issuer]) -> None:
    old, new = issuers
    server = Server(old.key_set())

    async def check(judge: TokenJudge) -> None:
        assert user(judge, old) == "alice"
        for useless in (b"<html>", OSError("away"), b'{"keys":[]}'):
            server.answer, asked = useless, server.asked
            await until(lambda: server.asked > asked + 1)  # noqa: B023 - waited for within the turn
            assert user(judge, old) == "alice"
        server.answer = new.key_set()
        await until(lambda: [key.key_id for key in judge.keys] == ["new"])
        assert user(judge, new) == "alice"
        assert "not known" in user(judge, old)

    play(server, check, refresh_ms=1)


def test_a_server_that_is_away_at_the_start_lets_nobody_in_until_it_is_back(issuers: list[Issuer]) -> None:
    server = Server(OSError("away"))

    async def check(judge: TokenJudge) -> None:
        assert "not known" in user(judge, issuers[0])
        server.answer = issuers[0].key_set()
        await until(lambda: judge.keys)
        assert user(judge, issuers[0]) == "alice"

    play(server, check, refresh_ms=3_600_000)


def test_a_start_waits_for_a_server_only_where_it_asks_for_the_first_reading(issuers: list[Issuer]) -> None:
    is_answering = threading.Event()

    def slow(url: str) -> bytes:
        assert url == URL
        assert is_answering.wait(60)
        return issuers[0].key_set()

    async def run() -> None:
        judge = TokenJudge(TokenSettings(URL, refresh_ms=3_600_000))
        signers = TokenSigners(judge, REAL.clock, slow)
        await signers.start()
        reading = asyncio.create_task(signers.first_read())
        await turns()
        assert not reading.done()
        assert "not known" in user(judge, issuers[0])
        is_answering.set()
        await reading
        assert user(judge, issuers[0]) == "alice"
        await signers.stop()

    asyncio.run(run())


def test_the_age_of_keys_counts_from_the_last_reading_that_brought_some(issuers: list[Issuer]) -> None:
    clock, server = SetClock(), Server(issuers[0].key_set())

    async def run() -> None:
        judge = TokenJudge(TokenSettings(URL, refresh_ms=1, retry_ms=1, retry_ms_max=2))
        signers = TokenSigners(judge, clock, server)
        await signers.start()
        await signers.first_read()
        clock.ms = 7_000
        server.answer, asked = OSError("away"), server.asked
        await until(lambda: server.asked > asked + 1)
        assert judge.keys_read_ms in {0, 7_000}
        before = judge.keys_read_ms
        clock.ms = 9_000
        await until(lambda: server.asked > asked + 3)
        assert judge.keys_read_ms == before
        server.answer = issuers[0].key_set()
        await until(lambda: judge.keys_read_ms == 9_000)
        await signers.stop()

    asyncio.run(run())


def test_a_stop_ends_it_also_in_the_turn_in_which_a_key_lacks(issuers: list[Issuer]) -> None:
    """The wait for that took the cancellation for its own end, and whoever stopped waited for ever."""

    async def run() -> None:
        judge = TokenJudge(TokenSettings(URL, refresh_ms=3_600_000))
        signers = TokenSigners(judge, REAL.clock, Server(issuers[0].key_set()))
        await signers.start()
        await signers.first_read()
        await turns()
        assert "not known" in user(judge, issuers[1])
        stopping = asyncio.create_task(signers.stop())
        await turns()
        assert stopping.done()

    asyncio.run(run())


def test_a_token_by_a_new_key_has_the_server_asked_before_its_time(issuers: list[Issuer]) -> None:
    old, new = issuers
    server = Server(old.key_set())

    async def check(judge: TokenJudge) -> None:
        server.answer = old.key_set(new)
        assert "not known" in user(judge, new)
        await until(lambda: len(judge.keys) == 2)
        assert user(judge, new) == user(judge, old) == "alice"

    play(server, check, refresh_ms=3_600_000, unknown_seconds_min=0.0)


def test_tokens_of_strangers_do_not_have_it_asked_all_the_time(issuers: list[Issuer]) -> None:
    server = Server(issuers[0].key_set())

    async def check(judge: TokenJudge) -> None:
        for _ in range(5):
            assert "not known" in user(judge, issuers[1])
            await turns()
        assert server.asked == 1

    # openssl may take seconds for each token
    play(server, check, refresh_ms=3_600_000, unknown_seconds_min=3600.0)


def test_a_file_is_read_with_a_bound_and_has_to_be_there(issuers: list[Issuer], tmp_path: Path) -> None:
    path = tmp_path / "the keys"
    url = path.as_uri()
    with pytest.raises(StartError, match="No such file"):
        play(fetch, lambda _: None, 1, url)
    path.write_bytes(issuers[0].key_set())
    play(fetch, lambda judge: [user(judge, issuers[0])] == ["alice"] or pytest.fail("no key"), 3_600_000, url)
    path.write_bytes(b"x" * (BYTES_MAX + 1))
    assert len(fetch(url)) == BYTES_MAX


@pytest.mark.parametrize("lacking", ["jwt", "cryptography"])
@pytest.mark.parametrize("url", [URL, "file:///keys"])
def test_a_node_that_cannot_judge_tokens_does_not_start_and_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, url: str, lacking: str
) -> None:
    monkeypatch.setattr(signing_keys, "find_spec", lambda name: None if name == lacking else name)
    with pytest.raises(StartError, match=r"pip install 'kavka-broker\[oauth\]'"):
        play(Server(b""), lambda _: None, 1, url)


def test_another_package_in_the_place_of_one_that_judges_tokens_is_no_way_to_judge(
    issuers: list[Issuer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "keys"
    path.write_bytes(issuers[0].key_set())
    other = ModuleType("jwt")
    other.__spec__ = ModuleSpec("jwt", None)
    monkeypatch.setitem(sys.modules, "jwt", other)
    with pytest.raises(StartError, match="cannot import name"):
        play(fetch, lambda _: None, 1, path.as_uri())


def test_a_node_starts_beside_a_server_that_never_ends_its_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(token_signers, "ANSWER_SECONDS_MAX", 0.2)
    own = "listener.name.clients.oauthbearer"

    async def run(url: str) -> None:
        settings = {
            "listeners": "INSIDE://127.0.0.1:0,CLIENTS://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
            "listener.security.protocol.map": "INSIDE:PLAINTEXT,CLIENTS:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "INSIDE",
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            f"{own}.sasl.server.callback.handler.class": VALIDATOR,
            f"{own}.sasl.jaas.config": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;",
            "sasl.oauthbearer.jwks.endpoint.url": url,
            "sasl.oauthbearer.expected.issuer": "issuer",
            "sasl.oauthbearer.expected.audience": "kafka",
        }
        async with running(tmp_path, settings) as inside:
            ages = {
                labels: value
                for listener in inside.server.addresses
                for name, labels, value in listener_samples(listener)
                if name == "kavka_token_keys_age_seconds"
            }
            assert list(ages) == [("CLIENTS",)]
            assert ages["CLIENTS",] >= 0.2

    with serving(dripping(b"HTTP/1.1 200 OK\r\n\r\n", b" ")) as url:
        asyncio.run(run(url))
