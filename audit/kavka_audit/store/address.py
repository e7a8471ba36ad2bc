"""Where a lake is in an S3 store: what a person writes, judged before anything is asked.

The endpoint and the region are those of the options, otherwise those of the environment, under the names that AWS's own
tools have for them. Credentials are never part of an address: whatever is here may be printed.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from kavka_audit.lake.directory import LakeError

BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
SEGMENT: Final = re.compile(r"[A-Za-z0-9_=-][A-Za-z0-9._=-]*")
ENDPOINT: Final = re.compile(r"https?://(\[[0-9a-fA-F:]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?/?")
SCHEMES: Final = ("s3://", "s3a://")
"""Hadoop's name for the same is understood too."""
PREFIX_LENGTH_MAX: Final = 512
ENDPOINTS: Final = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
REGIONS: Final = ("AWS_REGION", "AWS_DEFAULT_REGION")
REGION: Final = "us-east-1"
Addressing = Literal["auto", "path", "virtual"]


@dataclass(frozen=True, slots=True)
class Address:
    """A prefix of a bucket. Without an endpoint it is at AWS; `addressing` is where the bucket stands in a URL."""

    bucket: str
    prefix: str = ""
    endpoint: str = ""
    region: str = REGION
    addressing: Addressing = "auto"

    def __str__(self) -> str:
        """Return it as it is written."""
        return "s3://" + "/".join(part for part in (self.bucket, self.prefix) if part)

    @property
    def is_virtual(self) -> bool:
        """Whether the bucket is part of the host's name: everywhere at AWS, where a certificate fits such a name."""
        if self.addressing == "auto":
            return not self.endpoint and "." not in self.bucket
        return self.addressing == "virtual"

    @property
    def host(self) -> str:
        """Return the endpoint in words."""
        return self.endpoint or f"AWS, region {self.region}"


def address_of(
    text: str,
    environment: Mapping[str, str],
    endpoint: str | None = None,
    region: str | None = None,
    addressing: Addressing = "auto",
) -> Address:
    """Return the address. Raises LakeError, which names what is wrong and how it is written."""
    scheme = next((scheme for scheme in SCHEMES if text.startswith(scheme)), None)
    if scheme is None:
        raise LakeError(f"--directory: {text} is no address of an S3 store; write one as s3://bucket/prefix")
    bucket, _, prefix = text.removeprefix(scheme).partition("/")
    prefix = prefix.removesuffix("/")
    if not BUCKET.fullmatch(bucket):
        raise LakeError(f"--directory: {bucket!r} is no name of a bucket; write one as s3://bucket/prefix")
    if len(prefix) > PREFIX_LENGTH_MAX or not all(SEGMENT.fullmatch(part) for part in prefix.split("/") if prefix):
        words = f"letters, digits and - _ = . between slashes, {PREFIX_LENGTH_MAX} characters at the most"
        raise LakeError(f"--directory: {prefix!r} is no prefix; it has {words}")
    url = endpoint or _first(environment, ENDPOINTS)
    if url and not ENDPOINT.fullmatch(url):
        field = "--s3-endpoint" if endpoint else next(name for name in ENDPOINTS if environment.get(name))
        raise LakeError(f"{field}: it is no endpoint; write one as https://s3.example.com or http://127.0.0.1:9000")
    return Address(bucket, prefix, url.removesuffix("/"), region or _first(environment, REGIONS) or REGION, addressing)


def _first(environment: Mapping[str, str], names: tuple[str, ...]) -> str:
    return next((environment[name] for name in names if environment.get(name)), "")
