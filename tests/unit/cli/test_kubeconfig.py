"""What a kubeconfig says of an API server and of who asks, and what of it is refused by name."""

import base64
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from kavka_cli.kubernetes.kubeconfig import KubeconfigError, access, files_of

CLUSTER = {"server": "https://10.0.0.1:6443/", "certificate-authority-data": base64.b64encode(b"AUTHORITY").decode()}
EXEC = {"apiVersion": "client.authentication.k8s.io/v1", "command": "login", "args": ["--now"]}


def written(path: Path, user: Mapping[str, Any] | None = None, **others: Any) -> Path:
    """A kubeconfig with one context, `prod`."""
    document = {
        "current-context": "prod",
        "clusters": [{"name": "far", "cluster": CLUSTER}],
        "users": [{"name": "me", "user": user or {"token": "T"}}],
        "contexts": [{"name": "prod", "context": {"cluster": "far", "user": "me", "namespace": "kafka"}}],
        **others,
    }
    path.write_text(yaml.safe_dump(document))
    return path


def never(line: Sequence[str], environment: Mapping[str, str]) -> str:
    raise AssertionError(f"nothing is to be run: {line} {environment}")


def test_a_token_and_the_namespace_of_the_current_context(tmp_path: Path) -> None:
    found = access([written(tmp_path / "config")], None, never)
    assert (found.context, found.server, found.namespace) == ("prod", "https://10.0.0.1:6443", "kafka")
    assert (found.authority, found.token, found.is_verified) == ("AUTHORITY", "T", True)


def test_files_are_found_beside_the_kubeconfig(tmp_path: Path) -> None:
    for name in ("me.crt", "me.key", "token"):
        (tmp_path / name).write_text(f"{name}\n")
    found = access(
        [written(tmp_path / "config", {"client-certificate": "me.crt", "client-key": "me.key"})], None, never
    )
    assert (found.certificate, found.key, found.token) == ("me.crt\n", "me.key\n", None)
    assert access([written(tmp_path / "config", {"tokenFile": "token"})], None, never).token == "token"


def test_of_several_files_the_first_that_has_a_name_counts(tmp_path: Path) -> None:
    first = tmp_path / "first"
    first.write_text(yaml.safe_dump({"users": [{"name": "me", "user": {"token": "mine"}}]}))
    second = written(tmp_path / "second")
    files = files_of(None, {"KUBECONFIG": f"{first}:{tmp_path / 'absent'}:{second}"})
    assert access(files, None, never).token == "mine"
    assert files_of(second, {"KUBECONFIG": str(first)}) == [second]


def test_a_program_gives_the_credentials(tmp_path: Path) -> None:
    asked: list[tuple[Sequence[str], Mapping[str, str]]] = []

    def run(line: Sequence[str], environment: Mapping[str, str]) -> str:
        asked.append((line, environment))
        return json.dumps({"status": {"token": "fresh"}})

    user = {"exec": {**EXEC, "env": [{"name": "PROFILE", "value": "dev"}]}}
    assert access([written(tmp_path / "config", user)], None, run).token == "fresh"
    ((line, environment),) = asked
    assert line == ["login", "--now"]
    assert environment["PROFILE"] == "dev"
    assert json.loads(environment["KUBERNETES_EXEC_INFO"])["kind"] == "ExecCredential"


@pytest.mark.parametrize(
    ("user", "others", "said"),
    [
        ({"auth-provider": {"name": "gcp"}}, {}, 'user "me": auth-provider is not supported'),
        ({"token": "T", "as": "root"}, {}, 'user "me": as is not supported'),
        ({"client-certificate-data": "no base64!"}, {}, "client-certificate-data: is no base64 of PEM"),
        ({"tokenFile": "absent"}, {}, "tokenFile: "),
        ({"exec": {"apiVersion": "v9"}}, {}, "exec.apiVersion v9 is not supported"),
        ({"exec": EXEC}, {}, "exec: login gave neither a token nor a certificate"),
        (None, {"current-context": ""}, "no current-context; name one with --context"),
        (None, {"contexts": []}, 'there is no context "prod"'),
        (None, {"clusters": [{"name": "far", "cluster": {}}]}, "server is no URL"),
        (None, {"clusters": [{"name": "far", "cluster": {**CLUSTER, "proxy-url": "x"}}]}, "proxy-url is not"),
    ],
)
def test_what_cannot_be_used_is_named(
    tmp_path: Path, user: dict[str, Any] | None, others: dict[str, Any], said: str
) -> None:
    with pytest.raises(KubeconfigError) as refused:
        access([written(tmp_path / "config", user, **others)], None, lambda *_: "{}")
    assert said in str(refused.value)


@pytest.mark.parametrize(("text", "said"), [("[1]", "is no kubeconfig"), ("{", "cannot be read")])
def test_a_file_that_is_none_is_named(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(KubeconfigError, match=said):
        access([path], None, never)
    with pytest.raises(KubeconfigError, match="there is no kubeconfig at"):
        access([tmp_path / "absent"], None, never)
