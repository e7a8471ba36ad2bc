"""Asks the API server who the holder of a token is and what that one may do: a SelfSubjectReview, and a
SelfSubjectAccessReview, with the token.

Nothing of the operator's own credentials goes with it, so that a token that the API server does not know is refused by
the API server itself, and the operator needs no right to judge others.
"""

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Final

from aiohttp import ClientError
from kubernetes.aio.client import ApiClient, Configuration

from kavka_operator.api import GROUP
from kavka_operator.api.kinds import KINDS
from kavka_operator.platform.kubernetes.live.api import ApiError

ACCESS: Final = "authorization.k8s.io/v1", "SelfSubjectAccessReview"
SUBJECT: Final = "authentication.k8s.io/v1", "SelfSubjectReview"
LACKING: Final = (403, 404)
"""Where the API server has no such review (before Kubernetes 1.28), or `system:basic-user` was taken from its users."""
NO_REVIEW: Final = "what answers for the API server does not answer a review"
REVIEW_SECONDS_MAX: Final = 10.0
OF_SERVER: Final = (
    "ssl_ca_cert", "ca_cert_data", "verify_ssl", "proxy", "proxy_headers", "tls_server_name",
    "disable_strict_ssl_verification",
)  # fmt: skip
"""What of a configuration is about the server, and not about who asks it."""


class AccessReviews:
    """Reviews by one API server. `aclose` ends its connections."""

    def __init__(self, configuration: Configuration) -> None:
        self._client = ApiClient(without_credentials(configuration))

    async def aclose(self) -> None:
        """Let go of the connections."""
        await self._client.close()

    async def may_list(self, token: str, kind: str, namespace: str) -> bool:
        """Return whether the token's holder may list the resources of a kind, in a namespace or, where it is empty, in
        all. Raises ApiError; its status is 401 where the API server does not know the token.
        """
        return await self._may(token, {"verb": "list", "resource": KINDS[kind].plural, "namespace": namespace})

    async def may_get(self, token: str, subresource: str, namespace: str, name: str) -> bool:
        """Return whether the token's holder may get a subresource of a KafkaCluster. Raises ApiError, as `may_list`."""
        about = {"resource": KINDS["KafkaCluster"].plural, "subresource": subresource}
        return await self._may(token, {"verb": "get", **about, "namespace": namespace, "name": name})

    async def user_name(self, token: str) -> str | None:
        """Return the user that the token's holder is; None where the API server does not tell. Raises ApiError, as
        `may_list`.
        """
        try:
            answer = await self._reviewed(token, SUBJECT, {})
        except ApiError as error:
            if error.status in LACKING:
                return None
            raise
        return _user_name(answer)

    async def _may(self, token: str, wanted: Mapping[str, str]) -> bool:
        """Return what a review says. Raises ApiError."""
        spec = {"spec": {"resourceAttributes": {"group": GROUP, **wanted}}}
        return _is_allowed(await self._reviewed(token, ACCESS, spec))

    async def _reviewed(self, token: str, review: tuple[str, str], more: Mapping[str, Any]) -> bytes:
        """Return the API server's answer to a review. Raises ApiError."""
        version, kind = review
        place = f"/apis/{version}/{kind.lower()}s"
        body = {"apiVersion": version, "kind": kind, **more}
        headers = {
            "Accept": "application/json", "Content-Type": "application/json", "Authorization": f"Bearer {token}"
        }  # fmt: skip
        prepared = await self._client.param_serialize("POST", place, header_params=headers, body=body, auth_settings=[])
        try:
            async with asyncio.timeout(REVIEW_SECONDS_MAX):
                answer = await self._client.call_api(*prepared, _request_timeout=REVIEW_SECONDS_MAX)
                data = bytes(await answer.response.read())
        except (OSError, TimeoutError, ClientError) as error:
            raise ApiError(f"the API server does not answer: {str(error) or type(error).__name__}") from error
        if not 200 <= answer.status < 300:
            raise ApiError("the API server refuses the review", answer.status)
        return data


def _is_allowed(data: bytes) -> bool:
    """Whether a review allows. Raises ApiError."""
    try:
        return json.loads(data)["status"]["allowed"] is True
    except (ValueError, LookupError, TypeError) as error:
        raise ApiError(NO_REVIEW) from error


def _user_name(data: bytes) -> str:
    """The user that a review names. Raises ApiError."""
    try:
        found = json.loads(data)["status"]["userInfo"]["username"]
    except (ValueError, LookupError, TypeError) as error:
        raise ApiError(NO_REVIEW) from error
    if not isinstance(found, str) or not found:
        raise ApiError(NO_REVIEW)
    return found


def without_credentials(configuration: Configuration) -> Configuration:
    """The way to the same API server for a client that brings a token of its own."""
    found = Configuration(host=configuration.host, api_key={})
    for name in OF_SERVER:
        setattr(found, name, getattr(configuration, name))
    found.retries = False
    return found
