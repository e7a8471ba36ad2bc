"""A real Kubernetes of one node on this machine: `CLUSTER=own`. Needs root.

The node has a network, mounts and processes of its own, as a machine inside the machine. Ending its process 1 ends all
that is in it: pods, mounts, interfaces, rules. It has no route out, so nothing in it reaches anything but this machine.
A pair of interfaces joins the two: the machine reaches the API, Services, pods and node ports by their addresses, and
pods reach the machine as `host.kavka.internal`.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from string import Template

from e2e.clusters.kubernetes import Kubernetes, kubectl
from e2e.identities import ETC, PKI, issue_all
from e2e.inside import LOADED, LOG, load_newer
from e2e.machine import (
    DNS_ADDRESS,
    HERE,
    HOST_ADDRESS,
    HOST_NAME,
    KUBECONFIG,
    LINK,
    NODE,
    NODE_ADDRESS,
    NODE_PACKAGES,
    PODS,
    SERVICES,
    STATE,
    demand,
    run,
    search,
)
from tools.kube.programs import PACKAGES, program

WORDS = {
    "PKI": PKI,
    "ETC": ETC,
    "PODS": PODS,
    "DNS_ADDRESS": DNS_ADDRESS,
    "NODE_ADDRESS": NODE_ADDRESS,
    "HOST_ADDRESS": HOST_ADDRESS,
}
NODE_PID, INIT_PID = STATE / "node.pid", STATE / "init.pid"
SYSCTLS = ("vm.overcommit_memory", "kernel.panic", "kernel.panic_on_oops")
"""What kubelet sets for the whole machine; `down` puts it back."""
ROUTE_METRIC = "1000000"
READY_SECONDS_MAX = 300.0
POLL_SECONDS = 0.1


def described() -> Kubernetes:
    """Return the cluster, which `up` starts."""
    return Kubernetes(
        KUBECONFIG,
        up,
        down,
        machine=(HOST_ADDRESS, HOST_NAME),
        is_own=True,
        has_service_routes=True,
        volumes=STATE / "volumes",
    )


def up() -> None:
    """Start the node, and wait until pods can run on it; one that runs already gets the images that were built since.
    Raises SystemExit or TimeoutError.
    """
    demand(NODE_PACKAGES)
    if is_alive(NODE_PID):
        load_newer()
        return
    for name in (name for names in PACKAGES.values() for name in names if name not in {"kstatus", "kind"}):
        program(name)
    for directory in (PKI, ETC, LOG):
        directory.mkdir(parents=True, exist_ok=True)
    issue_all()
    write_settings()
    start()
    join()
    make_usable()


def write_settings() -> None:
    """Fill in the files of `etc`."""
    for path in sorted((HERE / "etc").iterdir()):
        text = Template(path.read_text()).substitute({name: str(value) for name, value in WORDS.items()})
        (ETC / path.name).write_text(text)
    saved = STATE / "sysctl"
    if not saved.exists():
        saved.write_text("".join(f"{key}={run('sysctl', '-n', key)}" for key in SYSCTLS))


def start() -> None:
    """Start process 1 of the node; `unshare` ends it when it is ended itself."""
    apart = ["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--propagation", "private"]
    with (LOG / "node.log").open("ab") as log:
        process = subprocess.Popen(
            ["unshare", *apart, sys.executable, "-m", "e2e.inside"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=HERE.parent,
            start_new_session=True,
            env={**os.environ, "PATH": search()},
        )
    NODE_PID.write_text(f"{process.pid}\n")
    wait_for("process 1 of the node", lambda: bool(children(process.pid)))
    INIT_PID.write_text(f"{children(process.pid)[0]}\n")


def join() -> None:
    """Join the node to the machine.

    While there is no node, packets to its addresses must not take the machine's way out, such as those of a client that
    still tries to connect: routes to nowhere, of a high metric, stay behind on purpose.
    """
    for network in (LINK, SERVICES, PODS):
        run("ip", "route", "replace", "unreachable", network, "metric", ROUTE_METRIC)
    run("ip", "link", "delete", "kavka0", may_fail=True)
    pid = INIT_PID.read_text().strip()
    run("ip", "link", "add", "kavka0", "type", "veth", "peer", "name", "eth0", "netns", pid)
    run("ip", "address", "add", f"{HOST_ADDRESS}/{LINK.partition('/')[2]}", "dev", "kavka0")
    run("ip", "link", "set", "kavka0", "up")
    for network in (SERVICES, PODS):
        run("ip", "route", "add", network, "via", NODE_ADDRESS)


def make_usable() -> None:
    """Wait for the API, the node, the images and the first service account."""
    wait_for("the API", lambda: asks("get", "--raw", "/readyz"))
    run(*kubectl(KUBECONFIG), "apply", "--filename", ETC / "cluster.yaml")
    wait_for("the node", lambda: asks("wait", "--for=condition=Ready", f"node/{NODE}", "--timeout=1s"))
    wait_for("the images", LOADED.exists)
    wait_for("the first service account", lambda: asks("get", "serviceaccount", "default"))


def asks(*arguments: str) -> bool:
    """Whether kubectl succeeds."""
    return subprocess.run([*kubectl(KUBECONFIG), *arguments], capture_output=True, check=False).returncode == 0


def down() -> None:
    """End the node at once, and remove what it left. Raises TimeoutError."""
    for path in (INIT_PID, NODE_PID):
        if is_alive(path):
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(path.read_text()), signal.SIGKILL)
        wait_for(f"the end of {path.stem}", lambda path=path: not is_alive(path))  # type: ignore[misc]
        path.unlink(missing_ok=True)
    run("ip", "link", "delete", "kavka0", may_fail=True)  # gone with the node, a moment later
    for root in (*Path("/sys/fs/cgroup").glob("*/kubepods"), Path("/sys/fs/cgroup/kubepods")):
        wait_for(f"an empty {root}", lambda root=root: is_removed(root))  # type: ignore[misc]
    if (STATE / "sysctl").exists():
        run("sysctl", "-qp", STATE / "sysctl")
    for made in reversed((STATE / "made").read_text().split()) if (STATE / "made").exists() else ():
        with contextlib.suppress(OSError):
            Path(made).rmdir()
    assert f" {STATE}/" not in Path("/proc/mounts").read_text(), f"something is mounted under {STATE}"
    shutil.rmtree(STATE, ignore_errors=True)


def is_removed(cgroup: Path) -> bool:
    """Whether a control group of pods is gone; those that are empty are removed, the deepest first."""
    for path in sorted(cgroup.rglob("*"), key=lambda path: -len(path.parts)) if cgroup.exists() else ():
        if path.is_dir():
            with contextlib.suppress(OSError):
                path.rmdir()
    with contextlib.suppress(OSError):
        cgroup.rmdir()
    return not cgroup.exists()


def is_alive(path: Path) -> bool:
    """Whether the process whose number stands in a file is the node's, and no zombie: numbers are used again."""
    try:
        return "e2e.inside" in Path(f"/proc/{path.read_text().strip()}/cmdline").read_text()
    except OSError:
        return False


def children(pid: int) -> list[int]:
    """The processes that a process has started."""
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def wait_for(what: str, holds: Callable[[], bool]) -> None:
    """Wait until something holds. Raises TimeoutError."""
    deadline = time.monotonic() + READY_SECONDS_MAX
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what} does not come in {READY_SECONDS_MAX:g} s; the logs are in {LOG}")
        time.sleep(POLL_SECONDS)
