"""A real Kubernetes without nodes: etcd, the API server and some controllers, as processes of their own.

Objects are checked, stored, watched and collected, and a StatefulSet makes its pods; no pod runs. It needs no root,
takes free ports of 127.0.0.1, keeps nothing, and ends each process by its pid.
"""

import http.client
import json
import os
import ssl
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlencode

import yaml

from tests.support.servers import free_port
from tools.kube.programs import program

READY_SECONDS_MAX = 120.0
END_SECONDS_MAX = 30.0
CALL_SECONDS_MAX = 60.0
KUBECTL_SECONDS_MAX = 180.0
POLL_SECONDS = 0.05
TOKEN = "the-token-of-the-tests"
CLOSED = (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError, ssl.SSLEOFError)
"""How a connection that the other side has closed is told: the head of a request is still sent, its body is not."""
CONTROLLERS = (
    "statefulset-controller",
    "cronjob-controller",
    "job-controller",
    "garbage-collector-controller",
    "namespace-controller",
    "disruption-controller",
    "persistentvolume-binder-controller",
    "persistentvolumeclaim-protection-controller",
    "endpointslice-controller",
    "clusterrole-aggregation-controller",
    "validatingadmissionpolicy-status-controller",
)

AUDIT_POLICY = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  userGroups: ["system:serviceaccounts"]
- level: None
"""
"""What service accounts ask is written down, so that a test can compare it with what they may ask."""

FEW_COLLECTIONS = {"GOGC": "400"}
"""An eighth of the processor time of a start is Go's looking for garbage, where it may take twice what is held."""

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """What the API server answered."""

    status: int
    body: Json
    warnings: tuple[str, ...] = ()

    @property
    def is_well(self) -> bool:
        return 200 <= self.status < 300

    @property
    def message(self) -> str:
        return str(self.body.get("message", ""))


class Api:
    """A connection to the API server that speaks plain JSON. One for each thread."""

    def __init__(self, port: int, certificate: Path, token: str = TOKEN) -> None:
        trusted = ssl.create_default_context(cafile=str(certificate))
        self._connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=CALL_SECONDS_MAX, context=trusted)
        self._token = token

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content: str = "application/json",
        query: Mapping[str, str] | None = None,
    ) -> Answer:
        """Ask for `path`, such as /api/v1/namespaces."""
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": content, "Accept": "application/json"}
        text = None if body is None else json.dumps(body)
        request = (method, f"{path}?{urlencode(query or {})}", text, headers)
        try:
            response = self._answer_to(*request)
        except CLOSED:
            self._connection.close()  # it was idle for longer than the API server keeps a connection, which is 90 s
            response = self._answer_to(*request)
        said = response.read()
        parsed = json.loads(said) if said[:1] == b"{" else {"message": said.decode(errors="replace")}
        return Answer(response.status, parsed, tuple(response.headers.get_all("Warning") or ()))

    def _answer_to(self, method: str, path: str, text: str | None, headers: dict[str, str]) -> http.client.HTTPResponse:
        self._connection.request(method, path, text, headers)
        return self._connection.getresponse()

    def close(self) -> None:
        self._connection.close()


@dataclass(slots=True)
class ControlPlane:
    """The processes of one control plane, and where they keep what they hold."""

    directory: Path
    port: int = field(default_factory=free_port)
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    etcd: str = ""
    api_server: "subprocess.Popen[bytes] | None" = None

    @property
    def certificate(self) -> Path:
        return self.directory / "server.crt"

    @property
    def kubeconfig(self) -> Path:
        return self.directory / "kubeconfig"

    @property
    def audit(self) -> Path:
        """Every request of a service account, one on a line."""
        return self.directory / "audit.log"

    def api(self, token: str = TOKEN) -> Api:
        """A connection of its own, of whoever has this token."""
        return Api(self.port, self.certificate, token)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start etcd, the API server and the controllers, and wait until the API serves."""
        self._write_identities()
        self.etcd = f"http://127.0.0.1:{free_port()}"
        self._launch("etcd", *self._etcd(self.etcd))
        self.start_api()
        self._wait("/api/v1/namespaces/default")
        self._launch("kube-controller-manager", *self._controllers())

    def start_api(self) -> None:
        """Start the API server, and wait until it serves."""
        self.api_server = self._launch("kube-apiserver", *self._api_server(self.etcd))
        self._wait("/readyz")

    def kill_api(self) -> None:
        """Kill the API server; what is stored is kept."""
        assert self.api_server is not None, "it was started"
        self.processes.remove(self.api_server)
        self.api_server.kill()
        self.api_server.wait(END_SECONDS_MAX)

    def stop(self) -> None:
        """End every process at once: what they hold goes with them."""
        while self.processes:
            process = self.processes.pop()
            process.kill()
            process.wait(END_SECONDS_MAX)

    def _launch(self, name: str, *arguments: str) -> "subprocess.Popen[bytes]":
        with (self.directory / f"{name}.log").open("wb") as log:
            line = [str(program(name)), *arguments]
            process = subprocess.Popen(
                line, cwd=self.directory, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                env={**os.environ, **FEW_COLLECTIONS},
            )  # fmt: skip
        self.processes.append(process)
        return process

    def _write_identities(self) -> None:
        """A certificate of the server, whose key also signs tokens and certificates, and one user who may do all."""
        line = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        line += ["-days", "2", "-subj", "/CN=kube-apiserver", "-addext", "subjectAltName=IP:127.0.0.1"]
        line += ["-keyout", "server.key", "-out", "server.crt"]
        subprocess.run(line, cwd=self.directory, check=True, capture_output=True)
        (self.directory / "tokens.csv").write_text(f"{TOKEN},admin,admin,system:masters\n")
        (self.directory / "audit.yaml").write_text(AUDIT_POLICY)
        self.write_kubeconfig(self.kubeconfig, TOKEN)

    def write_kubeconfig(self, path: Path, token: str) -> None:
        """Write how to ask the API server as whoever has this token."""
        path.write_text(yaml.safe_dump(self._kubeconfig(token)))
        path.chmod(0o600)

    def _kubeconfig(self, token: str) -> Json:
        server = {"server": f"https://127.0.0.1:{self.port}", "certificate-authority": str(self.certificate)}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "tests",
            "clusters": [{"name": "tests", "cluster": server}],
            "users": [{"name": "admin", "user": {"token": token}}],
            "contexts": [{"name": "tests", "context": {"cluster": "tests", "user": "admin"}}],
        }

    def _etcd(self, client: str) -> tuple[str, ...]:
        """Without syncs: what a test stores need not outlive a power cut."""
        peer = f"http://127.0.0.1:{free_port()}"
        return (
            *("--data-dir", "etcd", "--unsafe-no-fsync", "--log-level", "warn"),
            *("--listen-client-urls", client, "--advertise-client-urls", client),
            *("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer),
            *("--initial-cluster", f"default={peer}"),
        )

    def _api_server(self, etcd: str) -> tuple[str, ...]:
        """The plugin ServiceAccount is off, because no controller makes the accounts that it asks every pod to have."""
        key = str(self.directory / "server.key")
        return (
            *("--etcd-servers", etcd, "--secure-port", str(self.port)),
            *("--bind-address", "127.0.0.1", "--advertise-address", "127.0.0.1", "--endpoint-reconciler-type", "none"),
            *("--tls-cert-file", str(self.certificate), "--tls-private-key-file", key),
            *("--token-auth-file", str(self.directory / "tokens.csv"), "--authorization-mode", "RBAC"),
            *("--client-ca-file", str(self.certificate)),
            *("--service-account-issuer", "https://kubernetes.default.svc"),
            *("--service-account-key-file", str(self.certificate), "--service-account-signing-key-file", key),
            *("--service-cluster-ip-range", "10.96.0.0/16", "--disable-admission-plugins", "ServiceAccount"),
            *("--enable-admission-plugins", "OwnerReferencesPermissionEnforcement"),  # as on OpenShift
            *("--audit-policy-file", str(self.directory / "audit.yaml"), "--audit-log-path", str(self.audit)),
        )

    def _controllers(self) -> tuple[str, ...]:
        return (
            *("--kubeconfig", str(self.kubeconfig), "--controllers", ",".join(CONTROLLERS)),
            *("--leader-elect=false", "--secure-port", "0"),
        )

    def _wait(self, path: str) -> None:
        """Wait until the API answers `path`. Raises AssertionError with the last lines of the logs."""
        deadline = time.monotonic() + READY_SECONDS_MAX
        while not self._answers(path):
            ended = [process.args for process in self.processes if process.poll() is not None]
            assert not ended, f"ended: {ended}\n{self.last_lines()}"
            assert time.monotonic() < deadline, f"not ready after {READY_SECONDS_MAX:g} s\n{self.last_lines()}"
            time.sleep(POLL_SECONDS)

    def _answers(self, path: str) -> bool:
        api = self.api()
        try:
            return api.call("GET", path).is_well
        except OSError:
            return False
        finally:
            api.close()

    def last_lines(self) -> str:
        """The ends of the logs."""
        logs = sorted(self.directory.glob("*.log"))
        return "\n".join(f"{log.name}:\n{log.read_text(errors='replace')[-2000:]}" for log in logs)


def kubectl(
    plane: ControlPlane, *arguments: str, stdin: str = "", namespace: str = "default"
) -> "subprocess.CompletedProcess[str]":
    """Run kubectl, and answer what came of it."""
    line = [str(program("kubectl")), "--kubeconfig", str(plane.kubeconfig), "--namespace", namespace, *arguments]
    settings = {**os.environ, "HOME": str(plane.directory)}  # its cache of what the API can
    return subprocess.run(
        line, input=stdin, capture_output=True, text=True, check=False, env=settings, timeout=KUBECTL_SECONDS_MAX
    )
