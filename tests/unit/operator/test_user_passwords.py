"""Passwords of users: made, rotated, followed, put back and taken away, with a Kafka and Secrets in memory."""

import json

from kavka_operator.domain.observed import Login, NoSecret
from kavka_operator.domain.plan import DropCredential, SetCredential
from kavka_operator.kafka.admin import AdminError
from kavka_operator.loop.passwords import Passwords
from kavka_operator.reconcile.users import TAKE_OVER
from tests.unit.operator.fakes import user
from tests.unit.operator.user_scene import READS, Scene, logs_in


def test_the_secret_has_all_that_a_client_needs() -> None:
    scene = Scene()
    scene.look(user("odd", userName='CN="a\\b",O=c'))
    texts = scene.texts("odd")
    jaas = texts["sasl.jaas.config"]
    assert jaas.startswith('org.apache.kafka.common.security.scram.ScramLoginModule required username="CN=\\"a\\\\b\\"')
    assert (texts["username"], texts["sasl.mechanism"]) == ('CN="a\\b",O=c', "SCRAM-SHA-512")
    assert (texts["security.protocol"], texts["bootstrap.servers"]) == ("SASL_PLAINTEXT", "127.0.0.1:9192")
    assert "bootstrap.servers=127.0.0.1:9192" in texts["client.properties"].replace("\\", "")


def test_an_address_that_is_away_stays_in_the_secret_and_a_new_one_comes() -> None:
    scene = Scene()
    both = ("127.0.0.1:9192", "127.0.0.1:9193")
    scene.kafka.logins = {"SCRAM-SHA-512": Login("SASL_PLAINTEXT", both)}
    scene.look(user())
    scene.kafka.logins = {"SCRAM-SHA-512": Login("SASL_PLAINTEXT", both[:1])}
    scene.rest()
    scene.kafka.logins = {"SCRAM-SHA-512": Login("SASL_SSL", ("127.0.0.1:9999",))}
    before = scene.texts()["password"]
    outcome = scene.look()
    assert [str(action) for action in outcome.done] == [
        'write again what is beside the password in Secret "etl"',
    ]
    assert (scene.texts()["bootstrap.servers"], scene.texts()["password"]) == ("127.0.0.1:9999", before)
    scene.rest()


def test_nothing_of_a_password_is_in_a_status_an_action_or_what_is_printed() -> None:
    scene = Scene()
    outcome = scene.look(user(acls=[READS]))
    password, notes = scene.texts()["password"], json.loads(scene.texts()["kavka.json"])
    told = [json.dumps(scene.status().to_dict()), repr(outcome), repr(outcome.done), str(outcome.done)]
    told += [repr(scene.secrets.kept), repr(Passwords(scene.secrets)), repr(scene.known)]
    for words in told:
        assert password not in words
        assert notes["key"] not in words
    assert any(isinstance(action, SetCredential) for action in outcome.done)


def test_rotate_makes_a_new_password_once_and_sets_it_in_the_same_look() -> None:
    scene = Scene()
    scene.look(user())
    first = scene.texts()["password"]
    outcome = scene.look(user(authentication={"rotate": "2026-11"}))
    assert [str(action) for action in outcome.done] == [
        'make a password (rotate is "2026-11" now) in Secret "etl"',
        'set the password of user "etl" for SCRAM-SHA-512',
    ]
    assert scene.texts()["password"] != first
    assert logs_in(scene)
    scene.rest()
    credential = scene.status().credential
    assert credential is not None
    assert credential.rotate == "2026-11"


def test_a_password_is_rotated_by_its_age() -> None:
    scene = Scene()
    scene.look(user(authentication={"rotateAfterDays": 30}))
    first = scene.texts()["password"]
    scene.now = 29.9
    scene.rest()
    scene.now = 30
    scene.look()
    assert scene.texts()["password"] != first
    assert logs_in(scene)
    scene.rest()


def test_a_secret_that_was_deleted_is_made_again_with_a_new_password() -> None:
    scene = Scene()
    scene.look(user())
    first = scene.texts()["password"]
    scene.secrets.remove(("default", "etl"))
    outcome = scene.look()
    assert str(outcome.done[0]) == 'make a password (the Secret was deleted) in Secret "etl"'
    assert scene.texts()["password"] != first
    assert logs_in(scene)
    scene.rest()


def test_a_password_that_a_person_writes_into_the_secret_is_applied() -> None:
    scene = Scene()
    scene.look(user())
    scene.secrets.put("etl", {**scene.texts(), "password": "chosen"}, "etl")
    scene.look()
    assert scene.kafka.passwords["etl", "SCRAM-SHA-512"][1] == "chosen"
    assert 'password="chosen"' in scene.texts()["sasl.jaas.config"]
    scene.rest()


def test_a_secret_without_its_notes_keeps_its_password() -> None:
    scene = Scene()
    scene.look(user())
    texts = scene.texts()
    for notes in (
        "",
        "{",
        '{"made": 1}',
        '{"made": "2026-11-21T12:00:00+00:00", "rotate": 1, "iterations": 1, "key": ""}',
    ):
        scene.secrets.put("etl", {**texts, "kavka.json": notes}, "etl")
        scene.look()
        assert scene.texts()["password"] == texts["password"]
        assert logs_in(scene)
        scene.rest()


def test_a_password_that_somebody_else_sets_in_kafka_is_put_back_and_told() -> None:
    scene = Scene()
    scene.look(user())
    scene.kafka.passwords["etl", "SCRAM-SHA-512"] = (4096, "another")
    scene.look()
    assert logs_in(scene)
    condition = scene.condition()
    assert condition is not None
    assert "the password for SCRAM-SHA-512 was another, is that of the Secret again" in condition.message
    scene.kafka.passwords.clear()
    scene.look()
    assert logs_in(scene)
    assert "was gone" in scene.status().last_correction.message  # type: ignore[union-attr]


def test_an_operator_that_dies_between_secret_and_kafka_goes_on_with_the_same_password() -> None:
    scene = Scene()
    scene.look(user(authentication={"rotate": "1"}))
    scene.kafka.refuse = AdminError("gone", retriable=True)
    scene.look(user(authentication={"rotate": "2"}))
    waiting = scene.texts()["password"]
    assert not logs_in(scene)
    assert scene.reason() == "Failing"
    scene.kafka.refuse = None
    scene.look()
    assert scene.texts()["password"] == waiting
    assert logs_in(scene)
    scene.rest()


def test_a_password_that_was_there_before_is_not_replaced_unasked() -> None:
    scene = Scene()
    scene.kafka.passwords["etl", "SCRAM-SHA-512"] = (8192, "of a person")
    scene.look(user(acls=[READS]))
    assert scene.reason() == "PasswordOfOthers"
    assert scene.kafka.passwords["etl", "SCRAM-SHA-512"][1] == "of a person"
    assert scene.secrets.kept == {}
    assert scene.kafka.rules is not None
    assert len(scene.kafka.rules["User:etl"]) == 2
    scene.rest()
    scene.look(user(acls=[READS], metadata={"annotations": {TAKE_OVER: "true"}}))
    assert scene.reason() == "Ready"
    assert logs_in(scene)


def test_a_status_that_was_lost_costs_no_password() -> None:
    scene = Scene()
    scene.look(user())
    password = scene.texts()["password"]
    scene.known.clear()
    scene.look(user())
    assert scene.texts()["password"] == password
    assert logs_in(scene)
    assert scene.reason() == "Ready"


def test_a_password_of_somebody_elses_secret_is_taken_and_followed() -> None:
    scene = Scene()
    taken = user(authentication={"passwordFrom": {"name": "vault", "key": "kafka"}})
    scene.look(taken)
    condition = scene.condition()
    assert condition is not None
    assert (condition.reason, condition.message) == (
        "SecretMissing",
        'spec.authentication.passwordFrom: there is no Secret "vault"; make it',
    )
    scene.secrets.put("vault", {"password": "x"})
    scene.look()
    assert scene.condition().message.endswith('Secret "vault" has no "kafka"; add it')  # type: ignore[union-attr]
    for password in ("first", "second"):
        scene.secrets.put("vault", {"kafka": password})
        scene.look()
        iterations, known = scene.kafka.passwords["etl", "SCRAM-SHA-512"]
        assert known == password
        assert iterations > 8192
        assert scene.reason() == "Ready"
        scene.rest()
    assert set(scene.secrets.kept) == {("default", "vault")}


def test_a_secret_that_is_not_ours_is_left_alone() -> None:
    scene = Scene()
    scene.secrets.put("etl", {"password": "of a database"})
    scene.look(user())
    assert scene.reason() == "SecretTaken"
    assert scene.texts() == {"password": "of a database"}
    assert scene.kafka.passwords == {}
    scene.look(user(authentication={"secretName": "etl-kafka"}))
    assert logs_in(scene, secret="etl-kafka")


def test_a_secret_that_cannot_be_written_is_told_and_no_password_is_set() -> None:
    scene = Scene()
    scene.secrets.refuse = "no room"
    scene.look(user())
    condition = scene.condition()
    assert condition is not None
    assert condition.message.endswith(": no room")
    assert scene.kafka.passwords == {}
    scene.secrets.refuse, scene.secrets.fault = "", NoSecret("SecretUnreadable", "may not be read")
    scene.look()
    assert scene.reason() == "SecretUnreadable"


def test_another_mechanism_is_set_before_the_first_is_taken_away() -> None:
    scene = Scene()
    scene.kafka.logins = None
    scene.look(user())
    outcome = scene.look(user(authentication={"type": "scram-sha-256"}))
    assert [type(action) for action in outcome.done if isinstance(action, SetCredential | DropCredential)] == [
        SetCredential,
        DropCredential,
    ]
    assert set(scene.kafka.passwords) == {("etl", "SCRAM-SHA-256")}
    assert logs_in(scene, mechanism="SCRAM-SHA-256")
    assert scene.texts()["sasl.mechanism"] == "SCRAM-SHA-256"
    scene.rest()
    scene.look(user(authentication={"type": "external"}))
    assert scene.kafka.passwords == {}
    assert scene.status().credential is None
    scene.rest()
