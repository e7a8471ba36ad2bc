"""DescribeUserScramCredentials (50): which users can log in by SCRAM, and how. Never a secret, only the mechanism.

- No user named means all of them. One that has no credentials is RESOURCE_NOT_FOUND, one named twice
  DUPLICATE_RESOURCE.
Versions: flexible from 0.
"""

from collections import Counter

from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.describe_user_scram_credentials_request import DescribeUserScramCredentialsRequest
from kavka_broker.protocol.messages.describe_user_scram_credentials_response import (
    CredentialInfo,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import api, listing
from kavka_broker.request.split_requests import Each


@api(
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    versions=(0, 0),
    each=(Each("users", "results", per_turn=200),),
)
@listing
def describe_user_scram_credentials(
    request: DescribeUserScramCredentialsRequest, broker: Broker, client: Client
) -> DescribeUserScramCredentialsResponse:
    del client
    credentials = broker.metadata.credentials
    counts = Counter(user.name for user in request.users) if request.users else Counter(credentials.users)
    results = []
    for user, count in counts.items():
        result = DescribeUserScramCredentialsResult(user, error_message=None)
        if count > 1:
            result.error_code, result.error_message = ErrorCode.DUPLICATE_RESOURCE, f'"{user}" is there {count} times'
        elif not (known := credentials.iterations_of(user)):
            result.error_code, result.error_message = ErrorCode.RESOURCE_NOT_FOUND, f'"{user}" has no credentials'
        else:
            result.credential_infos = [CredentialInfo(*info) for info in sorted(known.items())]
        results.append(result)
    return DescribeUserScramCredentialsResponse(error_message=None, results=results)
