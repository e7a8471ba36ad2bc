"""Users: their access rules and limits, who owns them, and what is left, with a Kafka and Secrets in memory."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pytest

from kavka_broker.core.quota.entity import Entity
from kavka_operator.api.cluster_status import KafkaClusterStatus
from kavka_operator.api.kinds import key_of
from kavka_operator.api.quota import INTERNAL_USERS
from kavka_operator.api.user import KafkaUser, KafkaUserStatus
from kavka_operator.domain.access_rules import Binding
from kavka_operator.domain.observed import Login, SeenAccess
from kavka_operator.domain.plan import AlterQuota, CreateAcls, DeleteAcls, DropCredential, SetCredential
from kavka_operator.kafka.admin import AdminError
from kavka_operator.loop.converge import converge, plan_once
from kavka_operator.loop.observation import Observation
from kavka_operator.loop.passwords import PASSWORD_LENGTH, Passwords
from kavka_operator.reconcile.users import declared_access, protected_users
from tests.unit.operator.fakes import NOW, FakeKafka, FakeSecrets, cluster, quota, topic, user
from tests.unit.operator.user_scene import OF_GROUP, READS, Scene, asking, logs_in

BY_HAND = Binding("Allow", "Write", "Topic", "Literal", "*", "scratch")


def test_a_user_is_made_with_all_that_belongs_to_it_and_then_at_rest() -> None:
    scene = Scene()
    outcome = scene.look(user(acls=[READS, OF_GROUP], quotas={"producerByteRate": "1Mi"}))
    assert [str(action) for action in outcome.done] == [
        'make a password (there is none yet) in Secret "etl"',
        (
            "make 3 access rules (Allow Describe Topic Literal * orders; Allow Read Group Prefixed * etl-;"
            " Allow Read Topic Literal * orders) of User:etl"
        ),
        "set producer_byte_rate=1Mi for user=etl",
        'set the password of user "etl" for SCRAM-SHA-512',
    ]
    assert logs_in(scene)
    assert len(scene.texts()["password"]) == PASSWORD_LENGTH
    assert scene.kafka.quotas == {Entity(user="etl"): {"producer_byte_rate": 1048576.0}}
    assert scene.condition() == scene.condition("Ready")
    assert scene.reason() == "Ready"
    assert scene.status().acl_count == 3
    assert scene.status().quotas == {"producer_byte_rate": 1048576.0}
    scene.rest()


class LateKafka(FakeKafka):
    """Tells of access rules as the look before would have seen them; of all else at once."""

    told: SeenAccess = SeenAccess({})

    def access(self, brokers: Iterable[int]) -> SeenAccess:
        before, self.told = self.told, super().access(brokers)
        return replace(self.told, rules=before.rules)


def test_what_a_broker_has_half_heard_of_is_not_asked_for_twice_in_a_look() -> None:
    kafka = LateKafka()
    kafka.logins = asking().logins
    scene = Scene(kafka)
    scene.look(user(acls=[READS], quotas={"producerByteRate": "1Mi"}))
    assert [type(action) for action in kafka.writes] == [CreateAcls, AlterQuota, SetCredential]
    scene.look()
    assert scene.reason() == "Ready"
    assert len(kafka.writes) == 3


# --- access rules and limits ----------------------------------------------------------------------------------------


def test_rules_follow_the_resource_and_those_of_others_stay_and_are_named() -> None:
    scene = Scene()
    scene.kafka.rules = {"User:etl": frozenset({BY_HAND})}
    scene.look(user(acls=[READS, OF_GROUP]))
    assert scene.status().unmanaged_acls == ("Allow Write Topic Literal * scratch",)
    scene.look(user(acls=[OF_GROUP]))
    assert scene.kafka.rules["User:etl"] == {BY_HAND, Binding("Allow", "Read", "Group", "Prefixed", "*", "etl-")}
    scene.rest()
    scene.look(user())
    assert scene.kafka.rules["User:etl"] == {BY_HAND}
    scene.rest()


def test_a_rule_that_somebody_takes_away_is_made_again_and_told() -> None:
    scene = Scene()
    scene.look(user(acls=[READS]))
    assert scene.kafka.rules is not None
    scene.kafka.rules["User:etl"] = frozenset()
    scene.look()
    assert len(scene.kafka.rules["User:etl"]) == 2
    assert "Allow Read Topic Literal * orders was gone, is there again" in (
        scene.status().last_correction.message  # type: ignore[union-attr]
    )


def test_rules_that_nobody_enforces_are_never_ready() -> None:
    scene = Scene()
    scene.kafka.rules = None
    scene.look(user(acls=[READS]))
    condition = scene.condition()
    assert condition is not None
    assert (condition.status, condition.reason) == ("False", "NoAuthorizer")
    assert "write authorization: {} into a KafkaCluster" in condition.message
    assert scene.condition("Stalled") is not None
    assert scene.kafka.passwords == {}, "nothing would hold it to its rules"
    assert not scene.secrets.kept
    scene.rest()
    scene.look(user())
    assert scene.reason() == "Ready"
    assert logs_in(scene)
    scene.look(user(acls=[READS]))
    assert scene.reason() == "NoAuthorizer"
    assert logs_in(scene), "what a client uses is not taken away"


@pytest.mark.parametrize(
    ("authentication", "words"),
    [
        ({"type": "scram-sha-256"}, "no listener offers SCRAM-SHA-256; listeners offer SCRAM-SHA-512"),
        ({"type": "tls"}, "no listener asks for certificates"),
    ],
)
def test_a_user_whom_no_listener_lets_in_is_warned_of(authentication: dict[str, str], words: str) -> None:
    scene = Scene()
    scene.look(user(authentication=authentication))
    warning = scene.condition("NotServed")
    assert warning is not None
    assert warning.reason == "NobodyCanLogIn"
    assert warning.message.startswith(words)
    scene.kafka.logins, scene.kafka.takes_certificates = {"SCRAM-SHA-256": Login("SASL_SSL")}, True
    scene.look()
    assert scene.condition("NotServed") is None


def test_a_user_by_certificate_is_its_subject_and_has_no_secret() -> None:
    scene = Scene()
    scene.look(user(authentication={"type": "tls"}, acls=[READS], quotas={"consumerByteRate": 1000}))
    assert scene.status().user_name == "CN=etl"
    assert scene.kafka.rules is not None
    assert set(scene.kafka.rules) == {"User:CN=etl"}
    assert set(scene.kafka.quotas) == {Entity(user="CN=etl")}
    assert (scene.status().secret, scene.secrets.kept, scene.kafka.passwords) == (None, {}, {})
    scene.rest()


def test_protected_users_are_refused_in_words_and_nothing_is_done() -> None:
    scene = Scene()
    scene.look(user("admin", acls=[READS], quotas={"producerByteRate": 1}))
    assert scene.reason("admin") == "Protected"
    assert scene.kafka.writes == []
    assert scene.secrets.kept == {}
    scene.delete("admin")
    assert scene.kafka.writes == []


def test_super_users_are_those_that_the_cluster_names() -> None:
    named = cluster(config={"super.users": "User:CN=a,O=b; User:root;Group:x"})
    assert protected_users(named) == {*INTERNAL_USERS, "CN=a,O=b", "root"}
    asks = {"name": "A", "port": 9092, "protocol": "SASL_PLAINTEXT", "sasl": {}}
    asking = cluster(listeners=[asks], authorization={"superUsers": ["User:admin"]})
    assert protected_users(asking) == {*INTERNAL_USERS, "admin"}
    assert protected_users(cluster()) == {*INTERNAL_USERS}
    plan = converge(Observation([user("root")], NOW, declared=declared_access(named)), FakeKafka())
    assert ready_reason(plan.statuses[key_of(user("root"))]) == "Protected"


def test_where_clients_log_in_is_told_by_the_cluster_where_its_nodes_are_run_here() -> None:
    tls = {"name": "TLS", "port": 9093, "protocol": "SASL_SSL", "sasl": {"mechanisms": ["SCRAM-SHA-512"]}}
    plain = {"name": "A", "port": 9092, "protocol": "SASL_PLAINTEXT", "sasl": {}}
    listeners = [{"name": "TLS", "bootstrapServers": "a:9093,b:9093"}]
    status = KafkaClusterStatus.decode({"bootstrapServers": "a:9092", "listeners": listeners})
    access = declared_access(cluster(listeners=[plain, tls]).replaced({"status": status}))
    assert access.logins == {"SCRAM-SHA-512": Login("SASL_SSL", ("a:9093", "b:9093"))}
    assert not access.takes_certificates
    alone = cluster(listeners=[plain]).replaced({"status": status})
    assert declared_access(alone).logins == {"SCRAM-SHA-512": Login("SASL_PLAINTEXT", ("a:9092",))}
    assert declared_access(cluster()).logins == {}
    scene = converge(
        Observation([user()], NOW, declared=declared_access(alone)), FakeKafka(), passwords=Passwords(FakeSecrets())
    )
    assert scene.statuses[key_of(user())].condition("NotServed") is None


def ready_reason(status: object) -> str:
    assert isinstance(status, KafkaUserStatus)
    condition = status.condition("Ready")
    assert condition is not None
    return condition.reason


def test_limits_that_the_resource_names_no_more_go_and_those_of_others_stay() -> None:
    scene = Scene()
    scene.kafka.quotas = {Entity(user="etl"): {"request_percentage": 50.0}}
    scene.look(user(quotas={"producerByteRate": 1000, "consumerByteRate": 2000}))
    assert scene.status().unmanaged_quotas == {"request_percentage": 50.0}
    scene.look(user(quotas={"producerByteRate": 1000}))
    assert scene.kafka.quotas[Entity(user="etl")] == {"request_percentage": 50.0, "producer_byte_rate": 1000.0}
    scene.look(user())
    assert scene.kafka.quotas[Entity(user="etl")] == {"request_percentage": 50.0}
    assert scene.status().quotas == {}
    scene.rest()


@pytest.mark.parametrize("user_is_older", [True, False])
def test_the_older_of_user_and_quota_wins_and_both_are_told(*, user_is_older: bool) -> None:
    scene = Scene()
    days = ("2026-11-01T00:00:00Z", "2026-11-02T00:00:00Z")
    first, second = days if user_is_older else reversed(days)
    limited = user(metadata={"creationTimestamp": first}, quotas={"producerByteRate": 1000}, acls=[READS])
    other = quota("q", {"user": {"name": "etl"}}, {"producerByteRate": 2000}, metadata={"creationTimestamp": second})
    scene.look(limited, other)
    expected = 1000.0 if user_is_older else 2000.0
    assert scene.kafka.quotas == {Entity(user="etl"): {"producer_byte_rate": expected}}
    of_user, of_quota = scene.status(), scene.known["ClientQuota", "default", "q"].status
    winner, loser = (of_user, of_quota) if user_is_older else (of_quota, of_user)
    assert winner.condition("Contested") is not None
    reason = "Conflict" if user_is_older else "QuotaConflict"
    assert loser.condition("Ready").reason == reason  # type: ignore[union-attr]
    assert logs_in(scene)
    assert scene.status().acl_count == 2
    scene.rest()
    scene.delete(*(("etl",) if user_is_older else ("q", "ClientQuota")))
    scene.look()
    left = 2000.0 if user_is_older else 1000.0
    assert scene.kafka.quotas == {Entity(user="etl"): {"producer_byte_rate": left}}
    scene.rest()


def test_two_resources_for_one_user() -> None:
    scene = Scene()
    older = user("a", userName="etl", acls=[READS], metadata={"creationTimestamp": "2026-10-01T00:00:00Z"})
    younger = user("b", userName="etl", acls=[READS, OF_GROUP], quotas={"producerByteRate": 1})
    scene.look(older, younger)
    assert scene.reason("a") == "Ready"
    assert scene.reason("b") == "Conflict"
    assert scene.kafka.quotas == {}
    scene.rest()
    scene.delete("a")
    scene.look()
    assert scene.reason("b") == "Ready"
    assert logs_in(scene, "etl", secret="b")
    assert scene.kafka.rules is not None
    assert len(scene.kafka.rules["User:etl"]) == 3


# --- the end --------------------------------------------------------------------------------------------------------


def test_a_deleted_user_leaves_nothing_of_its_own() -> None:
    scene = Scene()
    scene.kafka.rules = {"User:etl": frozenset({BY_HAND})}
    scene.look(user(acls=[READS], quotas={"producerByteRate": 1000}))
    outcome = scene.delete()
    kinds = [type(action) for action in outcome.done if isinstance(action, AlterQuota | DeleteAcls | DropCredential)]
    assert kinds == [AlterQuota, DropCredential, DeleteAcls]
    assert scene.kafka.rules == {"User:etl": {BY_HAND}}
    assert (scene.kafka.passwords, scene.kafka.quotas, scene.secrets.kept) == ({}, {}, {})
    assert scene.known == {}


def test_a_user_that_is_retained_stays_as_it_is() -> None:
    scene = Scene()
    scene.look(user(acls=[READS], quotas={"producerByteRate": 1000}, deletionPolicy="Retain"))
    writes = len(scene.kafka.writes)
    scene.delete()
    assert len(scene.kafka.writes) == writes
    assert ("default", "etl") in scene.secrets.kept


def test_a_password_that_is_another_by_now_is_not_taken_away() -> None:
    scene = Scene()
    scene.look(user())
    scene.kafka.passwords["etl", "SCRAM-SHA-512"] = (4096, "of a person")
    scene.delete()
    assert scene.kafka.passwords == {("etl", "SCRAM-SHA-512"): (4096, "of a person")}


# --- many, and faults -----------------------------------------------------------------------------------------------


def test_a_thousand_users_cost_few_requests() -> None:
    scene = Scene()
    users = [user(f"u{number}", acls=[READS], quotas={"producerByteRate": 1000}) for number in range(1000)]
    scene.look(*users)
    assert {scene.reason(each.name) for each in users} == {"Ready"}
    assert scene.kafka.requests == 3 * 5
    scene.rest()


def test_what_is_refused_for_one_user_is_that_users_alone() -> None:
    scene = Scene()

    class Picky(FakeKafka):
        def perform(self, action: object) -> None:
            if isinstance(action, SetCredential) and action.user == "bad":
                raise AdminError("UnacceptableCredentialError")
            super().perform(action)  # type: ignore[arg-type]

    scene.kafka = Picky()
    scene.look(user("bad", acls=[READS]), user("good"), topic("t"))
    assert (scene.reason("bad"), scene.reason("good")) == ("Rejected", "Ready")
    scene.look(user("bad", acls=[]))
    assert scene.kafka.rules == {"User:bad": frozenset()}


def test_a_cluster_that_tells_nothing_of_users_costs_users_alone() -> None:
    scene = Scene()
    scene.kafka.refuse_access = AdminError("could not look at users and access rules: not authorized")
    scene.look(user(), topic("t"))
    assert scene.reason() == "Rejected"
    assert scene.known["Topic", "default", "t"].status.condition("Ready").status == "True"  # type: ignore[union-attr]
    assert scene.secrets.kept == {}


def test_a_plan_tells_what_would_be_done_without_any_secret() -> None:
    scene = Scene()
    asked: Sequence[KafkaUser] = [user(acls=[READS])]
    _, plans = plan_once(Observation(asked, NOW), scene.kafka)
    kinds = [type(action).__name__ for action in plans[key_of(asked[0])].actions]
    assert kinds == ["KeepSecret", "CreateAcls"]
    scene.look(*asked)
    made = scene.known[key_of(asked[0])]
    rotated = user(acls=[READS], authentication={"rotate": "now"}).replaced({"status": made.status})
    _, plans = plan_once(Observation([made], NOW), scene.kafka)
    assert plans[key_of(made)].actions == ()
    _, plans = plan_once(Observation([rotated], NOW), scene.kafka)
    assert [type(action).__name__ for action in plans[key_of(rotated)].actions] == ["KeepSecret"]
    assert isinstance(made, KafkaUser)
    assert CreateAcls("User:etl", ()) not in scene.kafka.writes
