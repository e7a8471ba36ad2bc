"""What must be done so that a user can log in, may do what its resource says, and no more of that.

The Secret is the truth about a password, and Kafka follows it: a new password stands in the Secret first, and the next
look, at once, sets it in Kafka. So an operator that dies in between loses no password. Kafka tells of a password only
the mechanism and how often it was hashed. That number is drawn with each password, so that it tells whether the one in
Kafka is the one of the Secret. A password that was there before the resource is not replaced unasked, as that would
lock out who uses it. Access rules are owned one by one; those of others stay.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.api.quota import INTERNAL_USERS, Limits
from kavka_operator.api.security import OF_NODES
from kavka_operator.api.user import CredentialStatus, KafkaUser, entity_of_user
from kavka_operator.domain.access_rules import declared, owned, texts
from kavka_operator.domain.name_lists import counted
from kavka_operator.domain.observed import Login, NoSecret, SeenAccess, SeenSecret
from kavka_operator.domain.plan import (
    AlterQuota,
    CreateAcls,
    DeleteAcls,
    DropCredential,
    DropSecret,
    KafkaPlan,
    KeepSecret,
    ManagedAction,
    Plan,
    SetCredential,
    Word,
    ready,
    reconciling,
    stalled,
)

TAKE_OVER = "kavka.dev/take-over-password"
NOBODY = "NobodyCanLogIn"
SUPER_USERS, PREFIX = "super.users", "User:"
AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"

Secret = SeenSecret | NoSecret


def protected_users(cluster: KafkaCluster) -> frozenset[str]:
    """The users of the cluster itself, and the super users that its resource names: brokers do not tell theirs."""
    authorization = cluster.spec.authorization
    principals = [*(authorization.super_users if authorization is not None else ())]
    principals += cluster.spec.config.get(SUPER_USERS, "").split(";")
    named = (name.strip() for name in principals)
    return frozenset({*INTERNAL_USERS, *(name.removeprefix(PREFIX) for name in named if name.startswith(PREFIX))})


def declared_access(cluster: KafkaCluster) -> SeenAccess:
    """Access as the resource of a cluster tells it; of one that others run, that is hardly more than nothing."""
    protected = protected_users(cluster)
    if cluster.spec.external is not None:
        return SeenAccess(protected=protected)
    return SeenAccess(
        logins=dict(_declared_logins(cluster)),
        takes_certificates=any(
            listener.protocol == "SSL" and listener.tls is not None and listener.tls.client_auth != "none"
            for listener in cluster.spec.listeners
        ),
        protected=protected,
    )


def _declared_logins(cluster: KafkaCluster) -> Iterator[tuple[str, Login]]:
    """Each mechanism that a listener offers, with the place; where several do, one with TLS."""
    asking = [listener for listener in cluster.spec.listeners if listener.sasl is not None]
    for listener in sorted(asking, key=lambda listener: listener.protocol == "SASL_SSL"):
        for mechanism in listener.sasl.mechanisms if listener.sasl is not None else ():
            yield mechanism, Login(listener.protocol, _addresses(cluster, listener.name))


def _addresses(cluster: KafkaCluster, listener: str) -> tuple[str, ...]:
    """The addresses of a listener by the status: its own, or those of the first that clients have."""
    known = {found.name: found.bootstrap_servers for found in cluster.status.listeners}
    names = [other.name for other in cluster.spec.listeners if other.name not in OF_NODES]
    usual = cluster.status.bootstrap_servers if names[:1] == [listener] else None
    text = known.get(listener) or usual
    return tuple(text.split(",")) if text else ()


@dataclass(frozen=True, slots=True)
class Seen:
    """The sight of a user: the access of its cluster, its Secret and where that is, its limits in Kafka."""

    access: SeenAccess
    secret: Secret
    place: str
    quotas: Mapping[str, float]


def reconcile(
    user: KafkaUser, seen: Seen, now: datetime, quota: KafkaPlan | None = None, older: KafkaUser | None = None
) -> KafkaPlan:
    """The plan for one user. `quota` is that for its limits; `older` claims the same user and came first."""
    if older is not None:
        return Plan(words=stalled("Conflict", f'{older.identity} is the user "{user.user_name}" too and is older'))
    if user.user_name in seen.access.protected:
        words = "is a super user, or the one that the operator logs in as"
        return Plan(words=stalled("Protected", f'user "{user.user_name}" {words}; choose another userName'))
    actions = (
        *_secret(user, seen, now),
        *_rules(user, seen.access),
        *_limits(user, seen, quota),
        *_credential(user, seen, now),
    )
    if problem := next(_problems(user, seen, quota), None):
        return Plan(actions, (*problem, *_nobody(user, seen.access)))
    if actions:
        return Plan(actions, reconciling("Applying", "; ".join(map(str, actions))))
    return Plan(words=(*ready(_at_rest(user, seen)), *_nobody(user, seen.access), *_beside(quota)))


def retire(user: KafkaUser, seen: Seen, quota: KafkaPlan | None = None, heir: KafkaUser | None = None) -> KafkaPlan:
    """The plan for a user whose resource is deleted: take back what it has made, the password first.

    `quota` is the plan for its limits. `heir` is another resource of the same user, which keeps the rules that it wants
    too, and sets a password of its own.
    """
    if user.user_name in seen.access.protected or user.spec.deletion_policy == "Retain":
        return Plan()
    actions: list[ManagedAction] = []
    before, known = user.status.credential, seen.access.credentials.get(user.user_name, {})
    if before is not None and known.get(before.mechanism) == before.iterations:
        actions.append(DropCredential(user.user_name, before.mechanism))
    kept = declared(heir) if heir is not None else frozenset()
    if gone := (owned(user) - kept) & _there(user, seen.access):
        actions.append(DeleteAcls(user.principal, tuple(sorted(gone))))
    actions += quota.actions if quota is not None else _lifted(user, seen)
    if isinstance(seen.secret, SeenSecret) and seen.secret.outlives and user.makes_password:
        actions.append(DropSecret(key_of_user(user), seen.place))
    return Plan(tuple(actions))


def key_of_user(user: KafkaUser) -> tuple[str, str, str]:
    """The key of the resource."""
    return user.kind_name, user.metadata.namespace, user.metadata.name


# --- the password ---------------------------------------------------------------------------------------------------


def _secret(user: KafkaUser, seen: Seen, now: datetime) -> Iterator[ManagedAction]:
    """The Secret to write, if it is ours to write."""
    if not user.makes_password or _is_of_others(user, seen) or _is_held_back(user, seen):
        return
    match seen.secret:
        case NoSecret(fault=""):
            why = "the Secret was deleted" if user.status.credential is not None else "there is none yet"
            yield KeepSecret(key_of_user(user), seen.place, why)
        case SeenSecret():
            why = _due(user, seen.secret, now)
            if why or not seen.secret.is_current:
                yield KeepSecret(key_of_user(user), seen.place, why)


def _due(user: KafkaUser, secret: SeenSecret, now: datetime) -> str:
    """The reason for which the password is to be replaced; empty where it is not."""
    asked = user.spec.authentication
    if secret.made is None:
        return ""
    if asked.rotate is not None and asked.rotate != secret.rotate:
        return f'rotate is "{asked.rotate}" now'
    if asked.rotate_after_days is not None and now - secret.made >= timedelta(days=asked.rotate_after_days):
        return f"the last is older than {counted(asked.rotate_after_days, 'day')}"
    return ""


def _credential(user: KafkaUser, seen: Seen, now: datetime) -> Iterator[ManagedAction]:
    """The password to set in Kafka, and the one of another mechanism to take away."""
    before, known = user.status.credential, seen.access.credentials.get(user.user_name, {})
    secret, mechanism = seen.secret, user.mechanism
    if (
        isinstance(secret, SeenSecret)
        and mechanism is not None
        and _may_set(user, seen, secret, now)
        and not _is_in_force(user, secret, known.get(mechanism))
    ):
        yield SetCredential(user.user_name, mechanism, secret.iterations, secret.password)
    if before is not None and before.mechanism != user.mechanism and known.get(before.mechanism) == before.iterations:
        yield DropCredential(user.user_name, before.mechanism)


def _may_set(user: KafkaUser, seen: Seen, secret: SeenSecret, now: datetime) -> bool:
    """Whether the password of the Secret is to be in force: a Secret that is to be written comes first."""
    if not secret.version or _is_of_others(user, seen) or _is_held_back(user, seen):
        return False
    return not (user.makes_password and _due(user, secret, now))


def _is_in_force(user: KafkaUser, secret: SeenSecret, iterations: int | None) -> bool:
    """Whether the password in Kafka, hashed so often, is that of the Secret."""
    before = user.status.credential
    if before is None or iterations != secret.iterations:
        return False
    return (before.mechanism, before.secret_version) == (user.mechanism, secret.version)


def _is_held_back(user: KafkaUser, seen: Seen) -> bool:
    """Whether the user is given no password, as nothing would hold it to its access rules. One that it has stays."""
    return _is_unguarded(user, seen) and user.status.credential is None


def _is_unguarded(user: KafkaUser, seen: Seen) -> bool:
    """Whether the user has access rules, and no authorizer asks for any."""
    return bool(user.spec.acls) and seen.access.rules is None


def _is_of_others(user: KafkaUser, seen: Seen) -> bool:
    """Whether the user had a password before its resource, and nothing allows to replace that."""
    if user.mechanism is None or not user.makes_password or user.status.credential is not None:
        return False
    there = seen.access.credentials.get(user.user_name, {}).get(user.mechanism)
    ours = seen.secret.iterations if isinstance(seen.secret, SeenSecret) and seen.secret.version else None
    return there not in {None, ours} and user.metadata.annotations.get(TAKE_OVER) != "true"


# --- access rules and limits ----------------------------------------------------------------------------------------


def _there(user: KafkaUser, access: SeenAccess) -> frozenset[object]:
    return frozenset((access.rules or {}).get(user.principal, frozenset()))


def _rules(user: KafkaUser, access: SeenAccess) -> Iterator[ManagedAction]:
    """The access rules to make, then those to take away: what stays allowed is never refused in between."""
    if access.rules is None:
        return
    wanted, there = declared(user), _there(user, access)
    if new := wanted - there:
        yield CreateAcls(user.principal, tuple(sorted(new)))
    if gone := (owned(user) - wanted) & there:
        yield DeleteAcls(user.principal, tuple(sorted(gone)))


def _limits(user: KafkaUser, seen: Seen, quota: KafkaPlan | None) -> tuple[ManagedAction, ...]:
    return quota.actions if quota is not None else _lifted(user, seen)


def _lifted(user: KafkaUser, seen: Seen) -> tuple[ManagedAction, ...]:
    """The limits that the resource has set and does not name any more."""
    gone = tuple(sorted(key for key in user.status.quotas if key in seen.quotas))
    return (AlterQuota(entity_of_user(user), {}, gone),) if gone else ()


# --- words ----------------------------------------------------------------------------------------------------------


def _problems(user: KafkaUser, seen: Seen, quota: KafkaPlan | None) -> Iterator[tuple[Word, ...]]:
    """Words for what keeps the user from being as it is wanted until a person does something, the worst first."""
    if _is_unguarded(user, seen):
        yield stalled("NoAuthorizer", _no_authorizer(user))
    if user.mechanism is not None and isinstance(seen.secret, NoSecret) and seen.secret.fault:
        yield _secret_words(seen.secret)
    if _is_of_others(user, seen):
        words = f'user "{user.user_name}" has a password for {user.mechanism} already, which nobody can read'
        remedy = "take it away in Kafka, give it by passwordFrom, or let it be replaced with the annotation"
        yield stalled("PasswordOfOthers", f'{words}; {remedy} {TAKE_OVER}: "true", which locks out who uses it now')
    if quota is not None and (refused := [word for word in quota.words if word.type == "Stalled"]):
        yield stalled("QuotaConflict", refused[0].message)


def _secret_words(secret: NoSecret) -> tuple[Word, ...]:
    match secret.reason:
        case "SecretMissing":
            return stalled("SecretMissing", secret.fault)
        case "SecretTaken":
            return stalled("SecretTaken", secret.fault)
        case "SecretForbidden":
            return stalled("SecretForbidden", secret.fault)
        case _:
            return stalled("SecretUnreadable", secret.fault)


def _no_authorizer(user: KafkaUser) -> str:
    return (
        f"no authorizer asks for access rules in this cluster, so that {counted(len(user.spec.acls), 'rule')} of this"
        " resource would protect nothing; write authorization: {} into a KafkaCluster whose nodes are run here, in any"
        f" other Kafka set authorizer.class.name={AUTHORIZER} and super.users, or take acls out"
    )


def _nobody(user: KafkaUser, access: SeenAccess) -> tuple[Word, ...]:
    """The warning where no listener lets this user in."""
    if user.mechanism is not None and access.logins is not None and user.mechanism not in access.logins:
        offered = f"; listeners offer {', '.join(sorted(access.logins))}" if access.logins else ""
        words = f"no listener offers {user.mechanism}{offered}: add a listener with SASL, and {user.mechanism} to its"
        return (Word("NotServed", "True", NOBODY, f"{words} sasl.enabled.mechanisms"),)
    if user.spec.authentication.type == "tls" and access.logins is not None and not access.takes_certificates:
        words = "no listener asks for certificates: add one with SSL and ssl.client.auth=required"
        return (Word("NotServed", "True", NOBODY, words),)
    return ()


def _beside(quota: KafkaPlan | None) -> tuple[Word, ...]:
    """Words about limits that stand beside Ready."""
    return tuple(word for word in quota.words if word.type == "Contested") if quota is not None else ()


def _at_rest(user: KafkaUser, seen: Seen) -> str:
    return "; ".join(_sentences(user, seen))


def _sentences(user: KafkaUser, seen: Seen) -> Iterator[str]:
    match user.spec.authentication.type:
        case "tls":
            yield f'"{user.user_name}" is known by its certificate'
        case "external":
            yield f'"{user.user_name}" logs in as somebody else says'
        case _:
            yield f'"{user.user_name}" logs in by {user.mechanism} with the password in {seen.place}'
    if user.spec.acls:
        yield f"{counted(len(declared(user)), 'access rule')} in force"
    if user.spec.quotas is not None:
        yield "limits in force on every broker"


def contested(younger: str, entity: str) -> Word:
    """The word for a quota that another, younger resource wants to set too."""
    return Word("Contested", "True", "AnotherResource", f"{younger} limits {entity} too and is younger: this one holds")


# --- memory ---------------------------------------------------------------------------------------------------------


def remembered(user: KafkaUser, plan: KafkaPlan, seen: Seen, now: datetime) -> dict[str, object]:
    """The fields of the status that follow from a plan which was carried out, for the next round."""
    found: dict[str, object] = {}
    for action in plan.actions:
        match action:
            case SetCredential(mechanism=mechanism, iterations=iterations):
                assert isinstance(seen.secret, SeenSecret), "it was set from its Secret"
                found["credential"] = CredentialStatus(
                    mechanism=mechanism,
                    iterations=iterations,
                    secret_version=seen.secret.version,
                    rotate=seen.secret.rotate,
                    made=seen.secret.made,
                    time=now,
                )
            case DropCredential():
                found.setdefault("credential", None)
            case CreateAcls() | DeleteAcls():
                found["acls"] = texts(declared(user))
            case AlterQuota():
                found["quotas"] = limits_of(user)
            case _:
                pass
    return found


def limits_of(user: KafkaUser) -> dict[str, float]:
    """The limits of a user by Kafka's keys."""
    limits = user.spec.quotas
    return Limits(**limits.__dict__).kafka_values() if limits is not None else {}
