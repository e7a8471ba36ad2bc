"""Reconciles KafkaUsers in bulk: reads their Secrets, access rules and passwords, and carries plans out by stages.

Thousands of users cost a handful of requests: one tells every access rule, one every password's hashing, and what is to
be altered goes to Kafka kind by kind, not user by user. First Secrets are written, then it is said what a user may do
and how much, and only then it may log in; when it goes it loses its password before anything else.
"""

from collections.abc import Collection, Iterator, Mapping, MutableSequence, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from kavka_operator.api.kinds import Key, Managed, key_of
from kavka_operator.api.user import CredentialStatus, KafkaUser, entity_of_user
from kavka_operator.domain.observed import NoSecret, SeenAccess, SeenCluster, SeenSecret
from kavka_operator.domain.plan import (
    AlterQuota,
    CreateAcls,
    DeleteAcls,
    DropCredential,
    DropSecret,
    KafkaAction,
    KafkaPlan,
    KeepSecret,
    ManagedAction,
    SetCredential,
)
from kavka_operator.kafka.admin import Admin, AdminError
from kavka_operator.loop.passwords import Passwords
from kavka_operator.loop.resource_errors import Failures
from kavka_operator.reconcile.users import Secret, Seen

NO_ADMIN_ACTIONS = (KeepSecret, DropSecret)
"""Actions that Kafka has no part in."""
STAGES = (KeepSecret, CreateAcls, AlterQuota, SetCredential, DropCredential, DeleteAcls, DropSecret)
"""The kinds of actions in the order in which they are carried out."""
TOGETHER_MAX = 200
NOT_SEEN = SeenAccess()


@dataclass(slots=True)
class Users:
    """The users of a cluster, as far as one look goes. Without `passwords`, Secrets are taken to be as statuses say.
    `declared` is what the KafkaCluster tells of access, which counts where it says where clients log in.
    """

    admin: Admin
    passwords: Passwords | None
    now: datetime
    declared: SeenAccess = NOT_SEEN
    _secrets: Mapping[Key, Secret] = field(default_factory=dict, repr=False)
    _fault: AdminError | None = None

    def look(self, found: SeenCluster, resources: Collection[Managed]) -> SeenCluster:
        """The cluster with what it tells of users, where there are any. Raises AdminError where time may help."""
        users = [resource for resource in resources if isinstance(resource, KafkaUser)]
        if not users:
            return found
        try:
            access, self._fault = self._known(self.admin.access(found.brokers)), None
        except AdminError as error:
            if error.retriable:
                raise
            self._fault = error
            return found
        self._secrets = (
            {key_of(user): _assumed(user) for user in users}
            if self.passwords is None
            else self.passwords.look(users, access.logins)
        )
        return replace(found, access=access)

    def _known(self, access: SeenAccess) -> SeenAccess:
        """The access that brokers describe, with what the KafkaCluster tells of it."""
        protected = access.protected | self.declared.protected
        if self.declared.logins is None:
            return replace(access, protected=protected)
        certified = self.declared.takes_certificates
        return replace(access, protected=protected, logins=self.declared.logins, takes_certificates=certified)

    def seen(self, user: KafkaUser, cluster: SeenCluster) -> Seen:
        """The sight of a user. Raises AdminError where the cluster does not tell."""
        if self._fault is not None:
            raise self._fault
        secret = self._secrets.get(key_of(user), NoSecret())
        quotas = cluster.quotas.get(entity_of_user(user), {})
        return Seen(cluster.access or NOT_SEEN, secret, self.words(user), quotas)

    def words(self, user: KafkaUser) -> str:
        """The place of the user's Secret for a person."""
        return (self.passwords or Passwords()).words(user)

    def location(self, user: KafkaUser) -> str:
        """The place of the user's Secret for a program."""
        return (self.passwords or Passwords()).location(user)

    def perform(
        self,
        plans: Mapping[Key, KafkaPlan],
        managed: Mapping[Key, Managed],
        failures: Failures,
        done: MutableSequence[tuple[Key, ManagedAction]],
    ) -> None:
        """Carry out the plans of users, kind by kind.

        Where something fails for a user, its password is not set: it might log in to more than it may. What is to be
        taken away is taken away all the same.
        """
        users = {key: user for key in plans if isinstance(user := managed[key], KafkaUser)}
        for stage in STAGES:
            open_ones = [
                (key, action)
                for key in users
                if stage is not SetCredential or key not in failures
                for action in plans[key].actions
                if isinstance(action, stage)
            ]
            for begin in range(0, len(open_ones), TOGETHER_MAX):
                self._perform_together(open_ones[begin : begin + TOGETHER_MAX], users, failures, done)

    def _perform_together(
        self,
        actions: Sequence[tuple[Key, ManagedAction]],
        users: Mapping[Key, KafkaUser],
        failures: Failures,
        done: MutableSequence[tuple[Key, ManagedAction]],
    ) -> None:
        for (key, action), error in zip(actions, self._faults(actions, users), strict=True):
            with failures.over(users[key]):
                if error is not None:
                    raise error
                done.append((key, action))

    def _faults(
        self, actions: Sequence[tuple[Key, ManagedAction]], users: Mapping[Key, KafkaUser]
    ) -> list[Exception | None]:
        """Carry out actions of one kind; what went wrong with each."""
        secrets = [(users[key], action) for key, action in actions if isinstance(action, KeepSecret)]
        if secrets:
            return self._kept(secrets)
        asked = [action for _, action in actions if not isinstance(action, NO_ADMIN_ACTIONS)]
        if asked:
            return [*self._asked(asked)]
        return [self._dropped(users[key], action) for key, action in actions if isinstance(action, DropSecret)]

    def _kept(self, secrets: Sequence[tuple[KafkaUser, KeepSecret]]) -> list[Exception | None]:
        assert self.passwords is not None, "a plan alone carries nothing out"
        words = self.passwords.keep(secrets, self.now)
        return [
            AdminError(f"could not {action}: {said}", retriable=True) if said else None
            for (_, action), said in zip(secrets, words, strict=True)
        ]

    def _dropped(self, user: KafkaUser, action: DropSecret) -> Exception | None:
        assert self.passwords is not None, "a plan alone carries nothing out"
        try:
            self.passwords.drop(user, action)
        except OSError as error:
            return AdminError(f"could not {action}: {error}", retriable=True)
        return None

    def _asked(self, actions: Sequence[KafkaAction]) -> Iterator[Exception | None]:
        """Ask Kafka for all together; where the request is refused as a whole, for each by itself."""
        try:
            yield from self.admin.perform_many(actions)
        except Exception:  # noqa: BLE001 - each by itself says what is wrong, and with which
            yield from map(self._asked_alone, actions)

    def _asked_alone(self, action: KafkaAction) -> Exception | None:
        try:
            self.admin.perform(action)
        except Exception as error:  # noqa: BLE001 - noted as this user's
            return error
        return None


def _assumed(user: KafkaUser) -> Secret:
    """The Secret as the status tells it, for who may not read it."""
    match user.status.credential:
        case CredentialStatus() as known:
            return SeenSecret(known.secret_version, known.iterations, "", known.made, known.rotate)
        case None:
            return NoSecret()
