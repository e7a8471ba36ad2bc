"""The requests of a lake to an S3 store, by obstore, and its refusals in words.

Credentials are found where AWS's own tools look first: AWS_ACCESS_KEY_ID with AWS_SECRET_ACCESS_KEY and
AWS_SESSION_TOKEN, or what a container or a machine of AWS is given. What the client says of an error may hold them (a
signature is answered with all that was signed), so that only the store's code for the error gets into a message.
"""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError
from obstore.store import S3Store

from kavka_audit.lake.directory import TablePlace
from kavka_audit.store.address import Address
from kavka_audit.store.ca_certificates import BUNDLE, of_machine
from kavka_audit.store.objects import Seen, StoreError

CONNECT_SECONDS_MAX: Final = 5
REQUEST_SECONDS_MAX: Final = 60
RETRY_SECONDS_MAX: Final = 30
"""A request is not tried again after that long; with the last try it ends before a lease does (`lease`)."""
RETRIES_MAX: Final = 4
PART_BYTES: Final = 8 << 20
PARTS_MAX: Final = 4
"""Parts of a large object that are on their way at a time."""
CODE: Final = re.compile(r"<Code>([A-Za-z]{1,64})</Code>")
STATUS: Final = re.compile(r"status code: ([0-9]{3})")
CREDENTIALS: Final = ("AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")
CREDENTIALS_FULL: Final = "AWS_CONTAINER_CREDENTIALS_FULL_URI"
PASSED_ON: Final = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
REFUSED_KEYS: Final = ("InvalidAccessKeyId", "SignatureDoesNotMatch", "XAdminUserNotFound", "InvalidSecurity")
REFUSED_TOKENS: Final = ("ExpiredToken", "InvalidToken", "TokenRefreshRequired")
OTHER_REGION: Final = ("AuthorizationHeaderMalformed", "PermanentRedirect", "IllegalLocationConstraintException")


class S3:
    """Objects below a prefix of a bucket. Each method raises StoreError."""

    def __init__(self, address: Address, environment: Mapping[str, str] = os.environ) -> None:
        self._address, self._environment = address, environment
        with self._told("opening"):
            self._store = S3Store(
                address.bucket,
                prefix=address.prefix or None,
                region=address.region,
                virtual_hosted_style_request=address.is_virtual,
                disable_bulk_delete=True,
                client_options=self._client_options(),
                retry_config={"max_retries": RETRIES_MAX, "retry_timeout": timedelta(seconds=RETRY_SECONDS_MAX)},
                **_endpoint(address),
            )

    def _client_options(self) -> Any:
        options: dict[str, object] = {
            "connect_timeout": timedelta(seconds=CONNECT_SECONDS_MAX),
            "timeout": timedelta(seconds=REQUEST_SECONDS_MAX),
            "allow_http": self._address.endpoint.startswith("http://"),
        }
        if trusted := self._trusted():
            options["root_certificate"] = trusted
        return options

    def _trusted(self) -> str:
        """Return certificates of authorities, beside those that the client finds itself. Raises StoreError."""
        if file := self._environment.get(BUNDLE):
            try:
                return Path(file).read_text(encoding="ascii")
            except (OSError, ValueError) as problem:
                raise StoreError(f"{BUNDLE}: {file} cannot be read as certificates in PEM: {problem}") from None
        # SSL_CERT_FILE names whom brokers have their certificates of, and the client would then trust nobody else.
        found = of_machine() if "SSL_CERT_FILE" in self._environment else None
        return found.read_text(encoding="utf-8") if found is not None else ""

    def list(self, below: str = "") -> Iterator[Seen]:
        """Give all objects, or those below a prefix of whole names."""
        with self._told("listing", "s3:ListBucket of the bucket"):
            for some in self._store.list(below or None):
                for one in some:
                    yield Seen(one["path"], one["size"], one["last_modified"].timestamp())

    def read(self, key: str) -> tuple[bytes, str] | None:
        """Return a small object and its tag, which no other content has; None where there is none."""
        with self._told(f"reading {key}", "s3:GetObject"):
            try:
                found = self._store.get(key)
            except FileNotFoundError as problem:
                if _code(problem) in ("NoSuchKey", ""):
                    return None
                raise
            return bytes(found.bytes()), str(found.meta["e_tag"])

    def fetch(self, key: str, file: Path) -> None:
        """Write an object into a file."""
        with self._told(f"reading {key}", "s3:GetObject"), file.open("wb") as written:
            for part in self._store.get(key).stream(min_chunk_size=PART_BYTES):
                written.write(part)

    def put(self, key: str, file: Path) -> None:
        """Make an object of a file, in the place of one that is there."""
        with self._told(f"writing {key}", "s3:PutObject"):
            self._store.put(key, file, chunk_size=PART_BYTES, max_concurrency=PARTS_MAX)

    def copy(self, key: str, place: str) -> None:
        """Make an object of another, in the place of one that is there."""
        with self._told(f"copying {key}", "s3:GetObject and s3:PutObject"):
            self._store.copy(key, place)

    def create(self, key: str, data: bytes) -> str | None:
        """Make an object and return its tag; None where there is one already."""
        with self._told(f"writing {key}", "s3:PutObject"):
            try:
                return str(self._store.put(key, data, mode="create", use_multipart=False)["e_tag"])
            except AlreadyExistsError:
                return None

    def replace(self, key: str, data: bytes, tag: str) -> str | None:
        """Put an object in the place of the one with this tag and return the new tag; None where there is another."""
        with self._told(f"writing {key}", "s3:PutObject"):
            try:
                return str(self._store.put(key, data, mode={"e_tag": tag}, use_multipart=False)["e_tag"])
            except PreconditionError as problem:
                if _code(problem) in ("PreconditionFailed", "ConditionalRequestConflict", "NoSuchKey", ""):
                    return None
                raise

    def delete(self, key: str) -> None:
        """Delete an object; there may be none."""
        with self._told(f"deleting {key}", "s3:DeleteObject"):
            try:
                self._store.delete(key)
            except FileNotFoundError as problem:
                if _code(problem) not in ("NoSuchKey", ""):
                    raise

    def table_place(self) -> TablePlace:
        """Return how deltalake reaches the prefix. It commits by conditional puts (If-None-Match), which the lease has
        found the store to heed. Raises StoreError.
        """
        address, found = self._address, dict[str, str]()
        found |= {name: self._environment[name] for name in PASSED_ON if self._environment.get(name)}
        found |= {"AWS_REGION": address.region, "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": str(address.is_virtual).lower()}
        found |= {"AWS_CONDITIONAL_PUT": "etag", "timeout": f"{REQUEST_SECONDS_MAX}s"}
        found |= {"max_retries": f"{RETRIES_MAX}", "retry_timeout": f"{RETRY_SECONDS_MAX}s"}
        if endpoint := _endpoint(address):
            found["AWS_ENDPOINT_URL"] = endpoint["aws_endpoint_url_s3"]
            found["AWS_ALLOW_HTTP"] = str(address.endpoint.startswith("http://")).lower()
        if not (trusted := self._trusted()):
            return TablePlace(str(address), found)
        own = of_machine()
        # deltalake trusts a file alone where it is given one.
        texts = {trusted, "" if own is None else own.read_text(encoding="utf-8")}
        return TablePlace(str(address), found, "\n".join(texts))

    def words(self, problem: str) -> str:
        """Return what is wrong by the text of another client's error, and what to do."""
        return self._words(problem, "of docs/how-to/audit.md")

    @contextmanager
    def _told(self, doing: str, right: str = "") -> Iterator[None]:
        """Raise StoreError, without what the client says, for an error of it."""
        try:
            yield
        except (BaseError, obstore.exceptions.NotSupportedError, FileNotFoundError, NotImplementedError) as problem:
            words = self._words(str(problem), right)
        else:
            return
        raise StoreError(f"{self._address}: {doing}: {words}")

    def _words(self, text: str, right: str) -> str:
        """Return what is wrong and what to do."""
        address, found = self._address, CODE.search(text)
        code = found[1] if found else ""
        if code == "NoSuchBucket":
            return f"there is no bucket {address.bucket} at {address.host}; make it, or name another in --directory"
        if code == "NoSuchKey":
            return "an object is not there that the tables name; put it back, or choose another prefix"
        if code in REFUSED_KEYS:
            return (
                f"{address.host} refuses the credentials ({code}); put right AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY"
            )
        if code in REFUSED_TOKENS:
            return f"{address.host} refuses the credentials ({code}); renew them and AWS_SESSION_TOKEN"
        if code in OTHER_REGION or "redirect without LOCATION" in text:
            return f"the bucket {address.bucket} is in another region than {address.region}; name it in --s3-region"
        if code == "AccessDenied":
            return f"{address.host} refuses it; give the credentials the right {right}"
        if code == "RequestTimeTooSkewed":
            return "the clock of this machine is wrong; set it"
        if code or (status := STATUS.search(text)) is None:
            return f"{address.host} answers {code}" if code else self._unanswered(text)
        return self._without_code(status[1], right)

    def _without_code(self, status: str, right: str) -> str:
        """Return what an answer says that has a status alone."""
        if not self._has_credentials():
            return "there are no credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        if status == "403":
            return f"{self._address.host} refuses it; give the credentials the right {right}"
        return f"{self._address.host} answers with status {status}; is it an S3 store? (--s3-endpoint)"

    def _unanswered(self, text: str) -> str:
        """Return why nobody has answered."""
        if not self._has_credentials():
            return "there are no credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        if "ertificate" in text or "UnknownIssuer" in text:
            words = f"the certificate of {self._address.host} is not trusted"
            return f"{words}; name a file with that of its authority in {BUNDLE}"
        return f"{self._address.host} does not answer; put right --s3-endpoint or AWS_ENDPOINT_URL_S3, or try later"

    def _has_credentials(self) -> bool:
        return any(self._environment.get(name) for name in (*CREDENTIALS, CREDENTIALS_FULL))


def _code(problem: Exception) -> str:
    found = CODE.search(str(problem))
    return found[1] if found else ""


def _endpoint(address: Address) -> Any:
    """Return the client's setting of the endpoint, whose host has the bucket's name where it is to stand there."""
    if not address.endpoint:
        return {}
    scheme, _, host = address.endpoint.partition("://")
    return {"aws_endpoint_url_s3": f"{scheme}://{address.bucket}.{host}" if address.is_virtual else address.endpoint}
