"""What the tests ask a real API server: our resources by kind, kubectl as a person uses it, and kstatus' verdict."""

import json
import subprocess
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from kavka_operator.api import GROUP, VERSION
from kavka_operator.api.kinds import KINDS
from tests.support.control_plane import Answer, Api, ControlPlane, Json, kubectl
from tests.support.waiting import until_outside
from tools.kube.programs import program

CRDS = Path(__file__).parents[2] / "crds"
OWNER = "the-tests"
STRICT = {"fieldValidation": "Strict"}
DRY = {**STRICT, "dryRun": "All"}
KSTATUS_SECONDS_MAX = 60


@dataclass(frozen=True, slots=True)
class Kubernetes:
    """A namespace of a control plane, and a connection to it."""

    plane: ControlPlane
    api: Api
    namespace: str

    def begin(self) -> None:
        """Make the namespace."""
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}}
        assert self.api.call("POST", "/api/v1/namespaces", body).is_well

    def end(self) -> None:
        """Let the namespace go, and do not wait for it."""
        self.api.call("DELETE", f"/api/v1/namespaces/{self.namespace}")

    def path(self, kind: str, name: str = "", part: str = "") -> str:
        """The path of our resources of a kind, or of one of them, or of its part, such as `status`."""
        place = f"/apis/{GROUP}/{VERSION}/namespaces/{self.namespace}/{KINDS[kind].plural}"
        return "/".join(word for word in (place, name, part) if word)

    def create(self, resource: Json, *, dry: bool = False) -> Answer:
        """Create a resource of ours, or ask what would come of it."""
        return self.api.call("POST", self.path(resource["kind"]), resource, query=DRY if dry else STRICT)

    def apply(self, resource: Json, *, dry: bool = False) -> Answer:
        """Apply a resource of ours server-side."""
        path = self.path(resource["kind"], resource["metadata"]["name"])
        query = {**(DRY if dry else STRICT), "fieldManager": OWNER, "force": "true"}
        return self.api.call("PATCH", path, resource, content="application/apply-patch+yaml", query=query)

    def see(self, kind: str, name: str, status: Json) -> Answer:
        """Write the status of a resource, as the operator does."""
        body = {"apiVersion": f"{GROUP}/{VERSION}", "kind": kind, "metadata": {"name": name}, "status": status}
        query = {"fieldManager": "kavka", "force": "true", **STRICT}
        return self.api.call(
            "PATCH", self.path(kind, name, "status"), body, content="application/apply-patch+yaml", query=query
        )

    def get(self, kind: str, name: str) -> Json:
        """A resource of ours as it is stored."""
        answer = self.api.call("GET", self.path(kind, name))
        assert answer.is_well, answer
        return answer.body

    def kubectl(self, *arguments: str, stdin: str = "") -> "subprocess.CompletedProcess[str]":
        """Run kubectl in the namespace, and answer what came of it."""
        return kubectl(self.plane, *arguments, stdin=stdin, namespace=self.namespace)

    def shows(self, *arguments: str, stdin: str = "") -> str:
        """What kubectl prints; an AssertionError where it fails."""
        ran = self.kubectl(*arguments, stdin=stdin)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout


def install(plane: ControlPlane) -> None:
    """Put the resource definitions into the API server, and wait until it serves them."""
    ran = kubectl(plane, "apply", "--server-side", "-f", str(CRDS))
    assert ran.returncode == 0, ran.stderr
    wait_for_kinds(plane, f"{GROUP}/{VERSION}", {kind.plural for kind in KINDS.values()})


def wait_for_kinds(plane: ControlPlane, version: str, plurals: set[str]) -> None:
    """Wait until the API server serves these kinds and tells of them: kubectl knows them by its discovery, and explains
    them by its OpenAPI, which follow the definitions a second later.
    """

    def are_told() -> bool:
        discovered = api.call("GET", f"/apis/{version}").body.get("resources", [])
        if not plurals <= {found["name"] for found in discovered}:
            return False
        listed = f"apis/{version}" in api.call("GET", "/openapi/v3").body["paths"]
        paths = api.call("GET", f"/openapi/v3/apis/{version}").body.get("paths", {}) if listed else {}
        return all(f"/apis/{version}/namespaces/{{namespace}}/{plural}" in paths for plural in plurals)

    with closing(plane.api()) as api:
        until_outside(lambda: all(api.call("GET", f"/apis/{version}/{plural}").is_well for plural in plurals))
        until_outside(are_told)


def verdict(resource: Json) -> str:
    """The status that kstatus gives an object: Current, InProgress, Failed, Terminating or Unknown."""
    return explained(resource)[0]


def explained(resource: Json) -> tuple[str, str]:
    """The status that kstatus gives an object, and its message."""
    ran = subprocess.run(
        [program("kstatus")],
        input=json.dumps(resource) + "\n",
        capture_output=True,
        text=True,
        check=True,
        timeout=KSTATUS_SECONDS_MAX,
    )
    word, _, message = ran.stdout.strip().partition(" ")
    assert word != "Error", message
    return word, message
