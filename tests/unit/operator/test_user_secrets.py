"""Where the Secrets of users lie: files of this machine, and an API server; and where clients log in by settings."""

import asyncio
import base64
import stat
from collections.abc import Coroutine
from copy import deepcopy
from pathlib import Path
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from kavka_operator.api.kinds import key_of
from kavka_operator.api.user import KafkaUser
from kavka_operator.domain.access_rules import Binding
from kavka_operator.domain.observed import Login, NoSecret
from kavka_operator.kafka.listeners import logins_of, takes_certificates
from kavka_operator.loop.converge import converge
from kavka_operator.loop.observation import Observation
from kavka_operator.loop.passwords import Passwords, Stored, Written
from kavka_operator.platform.kubernetes.live.api import Api, ApiError, Bridge
from kavka_operator.platform.kubernetes.live.user_secrets import FRESH_SECONDS, READS_MAX, USER, KubernetesSecrets
from kavka_operator.platform.local.layout import Layout
from kavka_operator.platform.local.secrets import read_secret
from kavka_operator.platform.local.user_secrets import OWNER, LocalSecrets
from tests.unit.operator.fakes import NOW, FakeKafka, user

PLACE = ("default", "etl")
TEXTS = {"username": "etl", "password": "of etl"}
WORD = st.sampled_from(["Allow", "Deny", "Read", "Topic", "Literal", "*", "10.0.0.0/8"])


# --- files ----------------------------------------------------------------------------------------------------------


def local(tmp_path: Path) -> LocalSecrets:
    layout = Layout.of(tmp_path, "default", "main")
    layout.make()
    return LocalSecrets(layout)


def test_a_secret_is_kept_in_files_that_nobody_else_may_read(tmp_path: Path) -> None:
    store = local(tmp_path)
    assert store.read([PLACE]) == {PLACE: NoSecret()}
    assert store.write([Written(user(), TEXTS, None)]) == [""]
    directory = Path(store.location(PLACE))
    assert {stat.S_IMODE(path.stat().st_mode) for path in directory.iterdir()} == {0o600}
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    found = store.read([PLACE])[PLACE]
    assert isinstance(found, Stored)
    assert (found.texts, found.user) == (TEXTS, "etl")
    assert store.read([PLACE])[PLACE] == found
    assert read_secret(store.layout, "etl")["password"] == "of etl"
    store.write([Written(user(), {**TEXTS, "password": "other"}, found.version)])
    again = store.read([PLACE])[PLACE]
    assert isinstance(again, Stored)
    assert again.version != found.version
    store.remove(PLACE)
    assert not directory.exists()
    store.remove(PLACE)


def test_a_secret_goes_without_the_files_that_are_not_its_own(tmp_path: Path) -> None:
    store = local(tmp_path)
    store.write([Written(user(), TEXTS, None)])
    directory = Path(store.location(PLACE))
    (directory / "notes.txt").write_text("mine")
    (directory / "more").mkdir()
    (directory / ".password.new").write_text("of a write that was cut short")
    store.remove(PLACE)
    assert sorted(path.name for path in directory.iterdir()) == ["more", "notes.txt"]
    assert (directory / "notes.txt").read_text() == "mine"


def test_of_a_secret_that_is_a_link_the_link_goes_alone(tmp_path: Path) -> None:
    store, elsewhere = local(tmp_path), tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "password").write_text("of another program")
    directory = Path(store.location(PLACE))
    directory.parent.mkdir(parents=True)
    directory.symlink_to(elsewhere)
    store.remove(PLACE)
    assert not directory.is_symlink()
    assert (elsewhere / "password").read_text() == "of another program"


def test_a_directory_of_a_person_is_of_no_user(tmp_path: Path) -> None:
    store = local(tmp_path)
    directory = Path(store.location(PLACE))
    directory.mkdir(parents=True)
    assert store.read([PLACE]) == {PLACE: NoSecret()}
    (directory / "password").write_text("mine\n")
    found = store.read([PLACE])[PLACE]
    assert isinstance(found, Stored)
    assert (found.texts, found.user) == ({"password": "mine"}, None)
    (directory / "odd").write_bytes(b"\xff")
    fault = store.read([PLACE])[PLACE]
    assert isinstance(fault, NoSecret)
    assert fault.reason == "SecretUnreadable"


def test_what_cannot_be_written_is_told(tmp_path: Path) -> None:
    store = local(tmp_path)
    (store.layout.root / "secrets").write_text("a file where a directory should be")
    (words,) = store.write([Written(user(), TEXTS, None)])
    assert words


def test_what_is_written_into_files_is_read_back_as_it_is_wanted(tmp_path: Path) -> None:
    kafka, passwords = FakeKafka(), Passwords(local(tmp_path))
    kafka.logins = {"SCRAM-SHA-512": Login("SASL_PLAINTEXT", ("127.0.0.1:9092",))}
    wanted = user(userName="a b=c\\")
    outcome = converge(Observation([wanted], NOW), kafka, passwords=passwords)
    made = wanted.replaced({"status": outcome.statuses[key_of(wanted)]})
    again = converge(Observation([made], NOW), kafka, passwords=passwords)
    assert again.done == []
    assert again.statuses == outcome.statuses


def test_users_of_other_namespaces_have_places_of_their_own(tmp_path: Path) -> None:
    store = local(tmp_path)
    other = user(metadata={"namespace": "shop"})
    store.write([Written(user(), TEXTS, None), Written(other, {"password": "of shop"}, None)])
    found = store.read([PLACE, ("shop", "etl")])
    assert [each.texts["password"] for each in found.values() if isinstance(each, Stored)] == ["of etl", "of shop"]
    assert (Path(store.location(("shop", "etl"))) / OWNER).exists()


# --- an API server --------------------------------------------------------------------------------------------------


class Here:
    """A `Bridge` that runs each coroutine on the spot."""

    def wait(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run(work)


class FakeServer:
    """Secrets of an API server, with versions as it has them."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], dict[str, Any]] = {}
        self.asked: list[tuple[str, str]] = []
        self.version = 0
        self.refuse: ApiError | None = None

    async def find_secret(self, namespace: str, name: str) -> dict[str, Any]:
        self.asked.append((namespace, name))
        if self.refuse is not None:
            raise self.refuse
        if (namespace, name) not in self.kept:
            raise ApiError("not found", 404)
        return deepcopy(self.kept[namespace, name])

    async def keep_secret(self, secret: dict[str, Any]) -> dict[str, Any]:
        if self.refuse is not None:
            raise self.refuse
        metadata = secret["metadata"]
        place = metadata["namespace"], metadata["name"]
        there = self.kept.get(place)
        if (there["metadata"]["resourceVersion"] if there else None) != metadata.get("resourceVersion"):
            raise ApiError("the object has been modified", 409)
        self.version += 1
        uid = there["metadata"]["uid"] if there else f"uid-{self.version}"
        self.kept[place] = {**secret, "metadata": {**metadata, "uid": uid, "resourceVersion": str(self.version)}}
        return deepcopy(self.kept[place])


class Scene:
    """The store over a server, and a clock."""

    def __init__(self) -> None:
        self.server, self.now = FakeServer(), 0.0
        self.store = KubernetesSecrets(cast("Api", self.server), cast("Bridge", Here()), lambda: self.now)

    def write(self, owner: KafkaUser, texts: dict[str, str], version: str | None) -> str:
        (words,) = self.store.write([Written(owner, texts, version)])
        return words

    def read(self) -> Stored | NoSecret:
        return self.store.read([PLACE])[PLACE]

    def metadata(self) -> dict[str, Any]:
        found: dict[str, Any] = self.server.kept[PLACE]["metadata"]
        return found


def test_a_secret_belongs_to_its_user_and_keeps_what_others_put_there() -> None:
    scene = Scene()
    assert scene.read() == NoSecret()
    owner = user(metadata={"uid": "u1"})
    assert scene.write(owner, TEXTS, None) == ""
    assert scene.metadata()["annotations"] == {USER: "etl"}
    assert [found["uid"] for found in scene.metadata()["ownerReferences"]] == ["u1"]
    stored = scene.server.kept[PLACE]
    stored["metadata"] |= {"labels": {**stored["metadata"]["labels"], "team": "a"}, "managedFields": [1]}
    stored["data"]["more"] = base64.b64encode(b"theirs").decode()
    stored["metadata"]["ownerReferences"].append({"kind": "App", "name": "etl", "uid": "a1"})
    scene.now += FRESH_SECONDS
    found = scene.read()
    assert isinstance(found, Stored)
    assert found.texts["more"] == "theirs"
    assert scene.write(user(metadata={"uid": "u2"}), {**TEXTS, "password": "new"}, found.version) == ""
    assert scene.metadata()["labels"]["team"] == "a"
    assert [each["uid"] for each in scene.metadata()["ownerReferences"]] == ["a1", "u2"]
    assert "managedFields" not in scene.metadata()
    again = scene.read()
    assert isinstance(again, Stored)
    assert again.texts == {**TEXTS, "password": "new", "more": "theirs"}
    assert scene.write(user(deletionPolicy="Retain"), TEXTS, again.version) == ""
    assert [each["uid"] for each in scene.metadata()["ownerReferences"]] == ["a1"]


def test_a_secret_of_others_is_known_by_its_labels() -> None:
    scene = Scene()
    texts = {"password": base64.b64encode(b"x").decode(), "keystore": base64.b64encode(b"\xff\xfe").decode()}
    scene.server.kept[PLACE] = {
        "metadata": {"uid": "u", "resourceVersion": "1", "annotations": {USER: "etl"}},
        "data": texts,
    }
    found = scene.read()
    assert isinstance(found, Stored)
    assert (found.texts, found.user, found.version) == ({"password": "x"}, None, "u/1")


def test_a_secret_that_was_written_by_somebody_else_meanwhile_is_read_again() -> None:
    scene = Scene()
    scene.write(user(), TEXTS, None)
    found = scene.read()
    assert isinstance(found, Stored)
    scene.metadata()["resourceVersion"] = "77"
    assert scene.write(user(), TEXTS, found.version) == "somebody else has written it meanwhile"
    assert isinstance(scene.read(), Stored)


def test_rights_that_are_missing_are_told_with_the_charts_value() -> None:
    scene = Scene()
    scene.server.refuse = ApiError("secrets is forbidden", 403)
    found = scene.read()
    assert isinstance(found, NoSecret)
    assert found.reason == "SecretForbidden"
    assert "userSecrets: [default]" in found.fault
    assert "userSecrets: [default]" in scene.write(user(), TEXTS, None)


def test_an_api_server_that_is_away_for_a_moment_changes_nothing() -> None:
    scene = Scene()
    scene.write(user(), TEXTS, None)
    before = scene.read()
    scene.server.refuse, scene.now = ApiError("does not answer"), 10.0
    assert scene.read() == before
    other = scene.store.read([("default", "other")])["default", "other"]
    assert isinstance(other, NoSecret)
    assert other.reason == "SecretUnreadable"


def test_secrets_are_read_some_at_a_time_and_each_in_its_turn() -> None:
    scene = Scene()
    places = [("default", f"u{number}") for number in range(250)]
    scene.store.read(places)
    assert sorted(scene.server.asked) == sorted(places)
    scene.server.asked.clear()
    scene.store.read(places)
    assert scene.server.asked == []
    for _ in range(3):
        scene.now += FRESH_SECONDS
        scene.store.read(places)
    assert len(scene.server.asked) == 3 * READS_MAX
    assert set(scene.server.asked) == set(places)


# --- words ----------------------------------------------------------------------------------------------------------


@given(WORD, WORD, WORD, WORD, WORD, st.text(min_size=1))
def test_a_rule_comes_back_from_its_words(a: str, b: str, c: str, d: str, e: str, name: str) -> None:
    rule = Binding(a, b, c, d, e, name)
    assert Binding.parsed(str(rule)) == rule


def test_what_is_no_rule_is_none() -> None:
    assert Binding.parsed("Allow Read") is None


def listening(**more: str) -> dict[str, str]:
    return {
        "listeners": "IN://:9092,OUT://:9093,CTL://:9094",
        "listener.security.protocol.map": "IN:PLAINTEXT,OUT:SASL_SSL,CTL:SASL_PLAINTEXT",
        "controller.listener.names": "CTL",
        "sasl.enabled.mechanisms": "SCRAM-SHA-512, PLAIN",
        **more,
    }


def test_clients_log_in_where_a_listener_for_them_offers_it() -> None:
    first = listening(**{"advertised.listeners": "IN://a:9092,OUT://a:9093"})
    second = listening(**{"advertised.listeners": "IN://b:9092,OUT://b:9093"})
    login = Login("SASL_SSL", ("a:9093", "b:9093"))
    assert logins_of([first, second]) == {"SCRAM-SHA-512": login, "PLAIN": login}
    own = listening(**{"listener.name.out.sasl.enabled.mechanisms": "OAUTHBEARER"})
    assert set(logins_of([own])) == {"OAUTHBEARER"}
    bare = {"listeners": "PLAINTEXT://a:1,SASL_PLAINTEXT://a:2"}
    assert logins_of([bare]) == {"GSSAPI": Login("SASL_PLAINTEXT", ("a:2",))}
    assert logins_of([{}]) == {}


def test_certificates_are_asked_for_where_clients_are_known_by_them() -> None:
    assert not takes_certificates(listening(**{"ssl.client.auth": "required"}))
    by_tls = listening(**{"listener.security.protocol.map": "IN:SSL,OUT:SASL_SSL,CTL:SSL"})
    assert not takes_certificates(by_tls)
    assert takes_certificates({**by_tls, "ssl.client.auth": "requested"})
    assert takes_certificates({**by_tls, "listener.name.in.ssl.client.auth": "required"})
    assert not takes_certificates({**by_tls, "ssl.client.auth": "required", "listener.name.in.ssl.client.auth": "none"})
