"""What a person writes for a lake in an S3 store."""

import pytest

from kavka_audit.lake.directory import LakeError
from kavka_audit.store.address import Address, address_of
from tests.unit.operator.person import run

BUCKET = "s3://bucket"


def test_an_address_is_a_bucket_and_a_prefix() -> None:
    assert address_of("s3://bucket/a/b/", {}) == Address("bucket", "a/b")
    assert address_of("s3a://bucket", {}) == Address("bucket")
    assert str(address_of("s3a://bucket/a", {})) == "s3://bucket/a"


@pytest.mark.parametrize(
    ("environment", "options", "found"),
    [
        ({}, (None, None), ("", "us-east-1")),
        ({"AWS_ENDPOINT_URL": "http://a"}, (None, None), ("http://a", "us-east-1")),
        (
            {"AWS_ENDPOINT_URL": "http://a", "AWS_ENDPOINT_URL_S3": "http://b:9"},
            (None, None),
            ("http://b:9", "us-east-1"),
        ),
        ({"AWS_ENDPOINT_URL_S3": "http://b", "AWS_REGION": "r"}, ("https://c/", "s"), ("https://c", "s")),
        ({"AWS_DEFAULT_REGION": "r"}, (None, None), ("", "r")),
        ({"AWS_DEFAULT_REGION": "r", "AWS_REGION": "q"}, ("http://[::1]:9", None), ("http://[::1]:9", "q")),
    ],
)
def test_options_win_over_the_environment(
    environment: dict[str, str], options: tuple[str | None, str | None], found: tuple[str, str]
) -> None:
    address = address_of(BUCKET, environment, *options)
    assert (address.endpoint, address.region) == found


@pytest.mark.parametrize(
    ("address", "is_virtual"),
    [
        (Address("bucket"), True),
        (Address("with.dots"), False),
        (Address("bucket", endpoint="http://a"), False),
        (Address("bucket", endpoint="http://a", addressing="virtual"), True),
        (Address("bucket", addressing="path"), False),
    ],
)
def test_a_bucket_stands_in_the_host_at_aws_alone(address: Address, *, is_virtual: bool) -> None:
    assert address.is_virtual is is_virtual


@pytest.mark.parametrize(
    ("text", "endpoint", "words"),
    [
        ("s3://", None, "--directory: '' is no name of a bucket"),
        ("s3://Bucket/a", None, "--directory: 'Bucket' is no name of a bucket"),
        ("s3://bucket/a/../b", None, "--directory: 'a/../b' is no prefix"),
        ("s3://bucket//a", None, "is no prefix"),
        ("s3://bucket/a?b", None, "is no prefix"),
        ("s3://bucket/" + "a" * 600, None, "512 characters"),
        ("gs://bucket", None, "is no address of an S3 store"),
        (BUCKET, "127.0.0.1:9000", "--s3-endpoint: it is no endpoint; write one as https://"),
        (BUCKET, "http://key:secret@host", "--s3-endpoint: it is no endpoint"),
    ],
)
def test_a_bad_address_is_refused_by_its_field(text: str, endpoint: str | None, words: str) -> None:
    with pytest.raises(LakeError) as told:
        address_of(text, {}, endpoint)
    assert words in str(told.value)
    assert "secret" not in str(told.value)


def test_an_endpoint_of_the_environment_is_named_by_its_variable() -> None:
    with pytest.raises(LakeError, match="AWS_ENDPOINT_URL_S3: it is no endpoint"):
        address_of(BUCKET, {"AWS_ENDPOINT_URL_S3": "host:1"})


def test_an_address_of_anything_else_is_refused_at_once() -> None:
    code, said = run("audit", "run", "--bootstrap", "127.0.0.1:1", "--directory", "gs://bucket/audit")
    assert code == 2
    assert "--directory: gs://bucket/audit is neither a directory, as audit, nor an S3 store" in said


def test_a_client_for_s3_that_is_not_installed_is_said_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking(command: str, extra: str, *modules: str) -> str:
        assert modules == ("obstore",)
        return f"{command} needs {extra}"

    monkeypatch.setattr("kavka_audit_run.main.lacking", lacking)
    code, said = run("audit", "run", "--bootstrap", "127.0.0.1:1", "--directory", "s3://bucket/audit")
    assert code == 1
    assert "kavka audit run --directory s3://... needs s3" in said
