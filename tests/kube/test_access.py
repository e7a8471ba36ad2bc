"""Who asks the API server, as a kubeconfig says it: client certificates and programs that give credentials."""

import base64
import json
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.kube.cluster import Kubernetes
from tests.kube.objects import topic
from tests.kube.test_command import COMMAND, COMMAND_SECONDS_MAX
from tests.support.control_plane import TOKEN, ControlPlane, Json

PROGRAM = """\
#!/bin/sh
test "$GREETING" = hello && cat '{status}'
"""


def certified(plane: ControlPlane, directory: Path, group: str) -> tuple[Path, Path]:
    """A certificate for a person of a group that the API server's authority has signed, and its key."""
    line = ["openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    line += ["-subj", f"/O={group}/CN=jane", "-keyout", "jane.key", "-out", "jane.csr"]
    subprocess.run(line, cwd=directory, check=True, capture_output=True)
    line = ["openssl", "x509", "-req", "-in", "jane.csr", "-CA", str(plane.certificate), "-days", "1"]
    line += ["-CAkey", str(plane.directory / "server.key"), "-CAcreateserial", "-out", "jane.crt"]
    subprocess.run(line, cwd=directory, check=True, capture_output=True)
    return directory / "jane.crt", directory / "jane.key"


def asked(kubernetes: Kubernetes, directory: Path, user: Json) -> tuple[int, str]:
    """Exit code of `kavka get` for a user of a kubeconfig, and what it says."""
    path = directory / "config"
    kubernetes.plane.write_kubeconfig(path, TOKEN)
    document = yaml.safe_load(path.read_text())
    document["users"][0]["user"] = user
    path.write_text(yaml.safe_dump(document))
    line = [str(COMMAND.with_name("kavka")), "get", "kvt", "--kubeconfig", str(path), "-n", kubernetes.namespace]
    ran = subprocess.run(line, capture_output=True, text=True, check=False, timeout=COMMAND_SECONDS_MAX)
    return ran.returncode, ran.stdout + ran.stderr


@pytest.fixture
def scene(kubernetes: Kubernetes) -> Kubernetes:
    assert kubernetes.create(topic("orders")).is_well
    return kubernetes


@pytest.mark.parametrize("form", ["files", "data"])
def test_a_client_certificate_says_who_asks(scene: Kubernetes, tmp_path: Path, form: str) -> None:
    pair = dict(
        zip(("client-certificate", "client-key"), certified(scene.plane, tmp_path, "system:masters"), strict=True)
    )
    user = {
        "files": {name: path.name for name, path in pair.items()},  # beside the kubeconfig
        "data": {f"{name}-data": base64.b64encode(path.read_bytes()).decode() for name, path in pair.items()},
    }[form]
    code, said = asked(scene, tmp_path, user)
    assert (code, "orders" in said) == (0, True), said


def test_a_certificate_of_somebody_without_rights_is_refused_by_name(scene: Kubernetes, tmp_path: Path) -> None:
    certificate, key = certified(scene.plane, tmp_path, "guests")
    code, said = asked(scene, tmp_path, {"client-certificate": str(certificate), "client-key": str(key)})
    assert code == 1
    assert said.startswith("error: the API server refuses (403): ")
    assert 'User "jane" cannot list' in said


@pytest.mark.parametrize("gives", ["a token", "a certificate"])
def test_a_program_of_the_kubeconfig_gives_credentials(scene: Kubernetes, tmp_path: Path, gives: str) -> None:
    status: Json = {"token": TOKEN}
    if gives == "a certificate":
        certificate, key = certified(scene.plane, tmp_path, "system:masters")
        status = {"clientCertificateData": certificate.read_text(), "clientKeyData": key.read_text()}
    credential = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}
    (tmp_path / "status.json").write_text(json.dumps(credential))
    program = tmp_path / "login"
    program.write_text(PROGRAM.format(status=tmp_path / "status.json"))
    program.chmod(0o755)
    wanted = {"apiVersion": credential["apiVersion"], "command": "./login", "interactiveMode": "Never"}
    code, said = asked(scene, tmp_path, {"exec": {**wanted, "env": [{"name": "GREETING", "value": "hello"}]}})
    assert (code, "orders" in said) == (0, True), said
