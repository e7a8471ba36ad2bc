"""What a kubeconfig says of an API server and of the person who asks it, for commands.

Read without a library for Kubernetes, which a `kavka` installation does not carry. As with kubectl, of several files
the first that has a name says what it stands for, and relative paths begin at the file that has them. What this does
not understand and what would change who asks, or how, is refused with its name.
"""

import base64
import json
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from kavka_operator.api.stored_resources import part

DEFAULT_FILE = "~/.kube/config"
FILE_BYTES_MAX = 4 << 20
EXEC_SECONDS_MAX = 60.0
EXEC_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
UNSUPPORTED_OF_CLUSTER = ("proxy-url",)
UNSUPPORTED_OF_USER = ("auth-provider", "as", "as-uid", "as-groups", "as-user-extra", "username", "password")

Json = dict[str, Any]
Run = Callable[[Sequence[str], Mapping[str, str]], str]
"""Runs a program with further environment variables, and gives what it prints. Raises KubeconfigError."""


class KubeconfigError(Exception):
    """A kubeconfig cannot be used; the message names the file or the field, and what to do."""


@dataclass(frozen=True, slots=True)
class Access:
    """An API server, and with what it is asked. `authority`, `certificate` and `key` are PEM."""

    context: str
    server: str
    namespace: str = "default"
    authority: str | None = None
    certificate: str | None = None
    key: str | None = None
    token: str | None = None
    server_name: str | None = None
    is_verified: bool = True


def files_of(chosen: Path | None, environment: Mapping[str, str]) -> list[Path]:
    """The files that hold the configuration: the chosen one, those of KUBECONFIG, or the one in the home directory."""
    if chosen is not None:
        return [chosen.expanduser()]
    named = [Path(word).expanduser() for word in environment.get("KUBECONFIG", "").split(os.pathsep) if word]
    return named or [Path(DEFAULT_FILE).expanduser()]


def access(files: Sequence[Path], context: str | None, run: Run | None = None) -> Access:
    """Access to the API server of a context, or of the current context. Raises KubeconfigError."""
    there = [path for path in files if path.exists()]
    if not there:
        raise KubeconfigError(f"there is no kubeconfig at {', '.join(map(str, files))}; name one with --kubeconfig")
    documents = [(path, _read(path)) for path in there]
    wanted = context or next((str(name) for _, found in documents if (name := found.get("current-context"))), "")
    if not wanted:
        raise KubeconfigError(f"{_names(there)}: no current-context; name one with --context")
    chosen, _ = _entry(documents, "contexts", "context", wanted)
    cluster, near = _entry(documents, "clusters", "cluster", str(chosen.get("cluster")))
    user, beside = _entry(documents, "users", "user", str(chosen["user"])) if chosen.get("user") else ({}, near)
    _refuse(cluster, UNSUPPORTED_OF_CLUSTER, f'cluster "{chosen.get("cluster")}"')
    _refuse(user, UNSUPPORTED_OF_USER, f'user "{chosen.get("user")}"')
    if not str(cluster.get("server", "")).startswith(("https://", "http://")):
        raise KubeconfigError(f'cluster "{chosen.get("cluster")}": server is no URL with http:// or https://')
    given = _credentials(user, beside, str(cluster["server"]), run or _run)
    return Access(
        context=wanted,
        server=str(cluster["server"]).rstrip("/"),
        namespace=str(chosen.get("namespace") or "default"),
        authority=_pem(cluster, "certificate-authority", near),
        server_name=cluster.get("tls-server-name"),
        is_verified=not cluster.get("insecure-skip-tls-verify"),
        **given,
    )


def _read(path: Path) -> Json:
    try:
        if path.stat().st_size > FILE_BYTES_MAX:
            raise KubeconfigError(f"{path}: more than {FILE_BYTES_MAX} bytes, which is no kubeconfig")
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise KubeconfigError(f"{path}: cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise KubeconfigError(f"{path}: is no kubeconfig: a map with clusters, users and contexts is expected")
    return found


def _entry(documents: Sequence[tuple[Path, Json]], many: str, single: str, name: str) -> tuple[Json, Path]:
    """The entry of a name in the first file that has it, and that file's directory. Raises KubeconfigError."""
    for path, document in documents:
        for entry in document.get(many) or ():
            if isinstance(entry, dict) and entry.get("name") == name:
                return part(entry, single), path.parent
    raise KubeconfigError(f'{_names([path for path, _ in documents])}: there is no {single} "{name}"')


def _names(paths: Sequence[Path]) -> str:
    return ", ".join(map(str, paths))


def _refuse(found: Json, unsupported: Sequence[str], where: str) -> None:
    """Raise KubeconfigError for a field that would change who asks, or how."""
    if names := [name for name in unsupported if found.get(name)]:
        raise KubeconfigError(f"{where}: {names[0]} is not supported; use a token, a client certificate or exec")


def _credentials(user: Json, near: Path, server: str, run: Run) -> dict[str, Any]:
    """The token, or the certificate and its key, of a user. Raises KubeconfigError."""
    if user.get("exec"):
        return _executed(part(user, "exec"), near, server, run)
    token = user.get("token")
    if not token and user.get("tokenFile"):
        token = _text(near / str(user["tokenFile"]), "tokenFile").strip()
    pair = {"certificate": _pem(user, "client-certificate", near), "key": _pem(user, "client-key", near)}
    return {"token": token, **pair}


def _executed(asked: Json, near: Path, server: str, run: Run) -> dict[str, Any]:
    """Credentials that a program gives (client-go credential plugins). Raises KubeconfigError."""
    version = str(asked.get("apiVersion"))
    if version not in EXEC_VERSIONS:
        raise KubeconfigError(f"exec.apiVersion {version} is not supported; {' or '.join(EXEC_VERSIONS)} is")
    info = {"apiVersion": version, "kind": "ExecCredential", "spec": {"interactive": False}}
    if asked.get("provideClusterInfo"):
        info["spec"] = {"interactive": False, "cluster": {"server": server}}
    more = {str(entry.get("name")): str(entry.get("value")) for entry in asked.get("env") or ()}
    command = str(asked.get("command"))
    program = str(near / command) if "/" in command else command  # a bare name is looked up on PATH
    text = run([program, *map(str, asked.get("args") or ())], {**more, "KUBERNETES_EXEC_INFO": json.dumps(info)})
    try:
        status = part(json.loads(text), "status")
    except (ValueError, AttributeError) as error:
        raise KubeconfigError(f"exec: {command} did not print an ExecCredential") from error
    given = {
        "token": status.get("token"),
        "certificate": status.get("clientCertificateData"),
        "key": status.get("clientKeyData"),
    }
    if not any(given.values()):
        raise KubeconfigError(f"exec: {command} gave neither a token nor a certificate")
    return given


def _run(line: Sequence[str], environment: Mapping[str, str]) -> str:
    """The output of a program. Its words on stderr reach the person. Raises KubeconfigError."""
    try:
        ran = subprocess.run(
            line,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            check=True,
            text=True,
            timeout=EXEC_SECONDS_MAX,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise KubeconfigError(f"exec: {line[0]} failed: {error}") from error
    return ran.stdout


def _pem(found: Json, name: str, near: Path) -> str | None:
    """The text of a certificate or key, from the data in the file or from the file that is named."""
    if data := found.get(f"{name}-data"):
        try:
            return base64.b64decode(str(data), validate=True).decode("ascii")
        except ValueError as error:
            raise KubeconfigError(f"{name}-data: is no base64 of PEM") from error
    return _text(near / str(found[name]), name) if found.get(name) else None


def _text(path: Path, field: str) -> str:
    try:
        return path.expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise KubeconfigError(f"{field}: {path} cannot be read: {error}") from error
