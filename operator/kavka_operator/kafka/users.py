"""What a cluster tells of users and access rules, and how it is told of others: plain messages of the admin protocol.

A password goes to Kafka salted and hashed, as KIP-554 has it, with a salt that is drawn for each time it is set.
"""

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import starmap
from typing import Any

import kafka.errors
from kafka.protocol.admin import (
    AlterUserScramCredentialsRequest,
    CreateAclsRequest,
    DeleteAclsRequest,
    DescribeAclsRequest,
    DescribeConfigsRequest,
    DescribeUserScramCredentialsRequest,
)

from kavka_operator.domain.access_rules import Binding
from kavka_operator.domain.observed import SeenAccess
from kavka_operator.domain.plan import CreateAcls, DeleteAcls, DropCredential, SetCredential, UserAction
from kavka_operator.kafka.errors import raise_for
from kavka_operator.kafka.listeners import logins_of, takes_certificates

SALT_BYTES = 32
BROKERS_ASKED_MAX = 10
ALTERATIONS_MAX = 200
NAME_CHARACTERS_MAX = 16_000
"""Of the names in one request: Kavka takes 64 KiB, and a character may take four."""
RULES_MAX = 1000
BROKER_RESOURCE = 4
ANY = 1
NUMBERS = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
MECHANISMS = {number: name for name, number in NUMBERS.items()}

TYPES = {"Topic": 2, "Group": 3, "Cluster": 4, "TransactionalId": 5, "DelegationToken": 6, "User": 7}
PATTERNS = {"Literal": 3, "Prefixed": 4}
PERMISSIONS = {"Deny": 2, "Allow": 3}
OPERATIONS = {
    "All": 2,
    "Read": 3,
    "Write": 4,
    "Create": 5,
    "Delete": 6,
    "Alter": 7,
    "Describe": 8,
    "ClusterAction": 9,
    "DescribeConfigs": 10,
    "AlterConfigs": 11,
    "IdempotentWrite": 12,
    "CreateTokens": 13,
    "DescribeTokens": 14,
    "TwoPhaseCommit": 15,
}

Send = Callable[..., Any]
CredentialAction = SetCredential | DropCredential
KINDS = (SetCredential, DropCredential, CreateAcls, DeleteAcls)


def access(send: Send, brokers: Sequence[int], own_user: str | None) -> SeenAccess:
    """The access to the cluster. `own_user` is the name that the operator logs in with."""
    settings = list(_settings(send, sorted(brokers)[:BROKERS_ASKED_MAX]))
    return SeenAccess(
        rules=rules_of(send),
        credentials=_credentials(send),
        logins=logins_of(settings) if settings else None,
        takes_certificates=any(map(takes_certificates, settings)),
        protected=frozenset({own_user} if own_user is not None else ()),
    )


def _settings(send: Send, brokers: Sequence[int]) -> Iterator[Mapping[str, str]]:
    """The settings of brokers, as far as they tell them to us."""
    for broker in brokers:
        resource = DescribeConfigsRequest.DescribeConfigsResource(
            resource_type=BROKER_RESOURCE, resource_name=str(broker), configuration_keys=None
        )
        with suppress(kafka.errors.KafkaError, OSError):
            (result,) = send(DescribeConfigsRequest(resources=[resource]), broker).results
            if not result.error_code:
                yield {setting.name: setting.value for setting in result.configs if setting.value is not None}


def rules_of(send: Send) -> dict[str, frozenset[Binding]] | None:
    """Every access rule by its principal; None without an authorizer."""
    response = send(
        DescribeAclsRequest(
            resource_type_filter=ANY,
            resource_name_filter=None,
            pattern_type_filter=ANY,
            principal_filter=None,
            host_filter=None,
            operation=ANY,
            permission_type=ANY,
        )
    )
    if response.error_code == kafka.errors.SecurityDisabledError.errno:
        return None
    raise_for(response.error_code, response.error_message)
    found: dict[str, set[Binding]] = {}
    for resource in response.resources:
        for acl in resource.acls:
            if (rule := _binding(resource, acl)) is not None:
                found.setdefault(acl.principal, set()).add(rule)
    return {principal: frozenset(rules) for principal, rules in found.items()}


def _binding(resource: Any, acl: Any) -> Binding | None:
    """An access rule in words; None where a number stands for a word that this version does not know."""
    words = (
        _WORDS[2].get(acl.permission_type),
        _WORDS[3].get(acl.operation),
        _WORDS[0].get(resource.resource_type),
        _WORDS[1].get(resource.pattern_type),
    )
    if None in words:
        return None
    permission, operation, kind, pattern = (word or "" for word in words)
    return Binding(permission, operation, kind, pattern, acl.host, resource.resource_name)


_WORDS = tuple({number: word for word, number in table.items()} for table in (TYPES, PATTERNS, PERMISSIONS, OPERATIONS))


def _credentials(send: Send) -> dict[str, dict[str, int]]:
    """The iterations of the passwords of each user, by mechanism."""
    response = send(DescribeUserScramCredentialsRequest(users=None))
    raise_for(response.error_code, response.error_message)
    return {
        result.user: {
            MECHANISMS[info.mechanism]: info.iterations
            for info in result.credential_infos
            if info.mechanism in MECHANISMS
        }
        for result in response.results
        if not result.error_code
    }


def carried_out(send: Send, actions: Sequence[UserAction]) -> list[Any]:
    """An answer to each action, in their order; they are of one kind."""
    credentials = [action for action in actions if isinstance(action, SetCredential | DropCredential)]
    new = [action for action in actions if isinstance(action, CreateAcls)]
    gone = [action for action in actions if isinstance(action, DeleteAcls)]
    assert len(actions) in {len(credentials), len(new), len(gone)}, "each with its kind"
    return altered(send, credentials) or created(send, new) or deleted(send, gone)


def altered(send: Send, actions: Sequence[CredentialAction]) -> list[Any]:
    """The answers of AlterUserScramCredentials, in the order of the actions, as many in a request as have room."""
    answers: list[Any] = []
    for part in _portions(actions):
        request = AlterUserScramCredentialsRequest(
            deletions=[_deletion(action) for action in part if isinstance(action, DropCredential)],
            upsertions=[_upsertion(action) for action in part if isinstance(action, SetCredential)],
        )
        found = {result.user: result for result in send(request).results}
        answers += [_answer(action, found[action.user]) for action in part]
    return answers


@dataclass(frozen=True, slots=True)
class _Done:
    """The answer to what was done already."""

    error_code: int = 0
    error_message: str | None = None


def _answer(action: CredentialAction, result: Any) -> Any:
    is_gone = isinstance(action, DropCredential) and result.error_code == kafka.errors.ResourceNotFoundError.errno
    return _Done() if is_gone else result


def _portions(actions: Sequence[CredentialAction]) -> Iterator[list[CredentialAction]]:
    part: list[CredentialAction] = []
    names: set[str] = set()
    for action in actions:
        length = sum(map(len, names)) + len(action.user)
        if part and (len(part) >= ALTERATIONS_MAX or length > NAME_CHARACTERS_MAX or action.user in names):
            yield part
            part, names = [], set()
        part.append(action)
        names.add(action.user)
    if part:
        yield part


def _deletion(action: DropCredential) -> Any:
    kind = AlterUserScramCredentialsRequest.ScramCredentialDeletion
    return kind(name=action.user, mechanism=NUMBERS[action.mechanism])


def _upsertion(action: SetCredential) -> Any:
    salt = os.urandom(SALT_BYTES)
    salted = hashlib.pbkdf2_hmac(HASHES[action.mechanism], action.password.encode(), salt, action.iterations)
    kind = AlterUserScramCredentialsRequest.ScramCredentialUpsertion
    return kind(
        name=action.user,
        mechanism=NUMBERS[action.mechanism],
        iterations=action.iterations,
        salt=salt,
        salted_password=salted,
    )


def created(send: Send, actions: Sequence[CreateAcls]) -> list[Any]:
    """An answer of CreateAcls for each action: that of a rule which was refused, if one was."""
    return _in_parts(actions, lambda part: send(CreateAclsRequest(creations=list(starmap(_creation, part)))).results)


def _in_parts(
    actions: Sequence[CreateAcls | DeleteAcls], ask: Callable[[list[tuple[str, Binding]]], Sequence[Any]]
) -> list[Any]:
    """An answer for each action, of rules that are asked for some at a time: that of a refused one, if there is one."""
    asked = [(index, (action.principal, rule)) for index, action in enumerate(actions) for rule in action.rules]
    answers: dict[int, Any] = {}
    for begin in range(0, len(asked), RULES_MAX):
        part = asked[begin : begin + RULES_MAX]
        for (index, _), result in zip(part, ask([rule for _, rule in part]), strict=True):
            if index not in answers or result.error_code:
                answers[index] = result
    return [answers[index] for index in range(len(actions))]


def _creation(principal: str, rule: Binding) -> Any:
    return CreateAclsRequest.AclCreation(
        resource_type=TYPES[rule.resource_type],
        resource_name=rule.name,
        resource_pattern_type=PATTERNS[rule.pattern_type],
        principal=principal,
        host=rule.host,
        operation=OPERATIONS[rule.operation],
        permission_type=PERMISSIONS[rule.permission],
    )


def deleted(send: Send, actions: Sequence[DeleteAcls]) -> list[Any]:
    """An answer of DeleteAcls for each action: that of a rule which was refused, if one was."""
    return _in_parts(actions, lambda part: send(DeleteAclsRequest(filters=list(starmap(_filter, part)))).filter_results)


def _filter(principal: str, rule: Binding) -> Any:
    """A filter that selects one rule and no other."""
    return DeleteAclsRequest.DeleteAclsFilter(
        resource_type_filter=TYPES[rule.resource_type],
        resource_name_filter=rule.name,
        pattern_type_filter=PATTERNS[rule.pattern_type],
        principal_filter=principal,
        host_filter=rule.host,
        operation=OPERATIONS[rule.operation],
        permission_type=PERMISSIONS[rule.permission],
    )
