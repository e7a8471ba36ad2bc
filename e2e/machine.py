"""What `make e2e` needs of the machine, and where it keeps its things.

The node has fixed addresses: one a machine. Nothing of them leads outside.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tools.cache import cache

HERE = Path(__file__).parent
CACHE = cache("e2e")
STATE = Path(tempfile.gettempdir()) / "kavka-e2e"  # one node a machine; sockets want a short path
IMAGES = CACHE / "images"
KUBECONFIG = STATE / "kubeconfig"

NODE = "kavka"
HOST_ADDRESS, NODE_ADDRESS, LINK = "10.199.0.1", "10.199.0.2", "10.199.0.0/30"
HOST_NAME = "host.kavka.internal"
"""The machine, as pods call it."""
SERVICES, API_ADDRESS, DNS_ADDRESS = "10.96.0.0/16", "10.96.0.1", "10.96.0.10"
PODS = "10.244.0.0/24"
API = f"https://{NODE_ADDRESS}:6443"

BUILDER_PACKAGES = {"buildah": "buildah", "mmdebstrap": "mmdebstrap", "openssl": "openssl", "gcc": "gcc"}
"""Programs that build images, and Debian's package of each."""
NODE_PACKAGES = {
    "containerd": "containerd",
    "runc": "runc",
    "iptables": "iptables",
    "conntrack": "conntrack",
    "ip": "iproute2",
    "sysctl": "procps",
    "openssl": "openssl",
}
"""Those of the own node; containernetworking-plugins has no program on PATH."""
PLUGINS = Path("/usr/lib/cni")


def demand(packages: Mapping[str, str]) -> None:
    """Go on only where the machine has all that is needed. Raises SystemExit."""
    if os.geteuid() != 0:
        raise SystemExit(
            "error: make e2e needs root: it makes network interfaces and mounts, in namespaces of their own"
        )
    lacking = [package for program, package in packages.items() if shutil.which(program, path=search()) is None]
    lacking += [] if packages is not NODE_PACKAGES or PLUGINS.is_dir() else ["containernetworking-plugins"]
    if lacking:
        raise SystemExit(f"error: make e2e lacks programs: apt-get install --no-install-recommends {' '.join(lacking)}")


def search() -> str:
    """PATH, with the places of programs for root."""
    return os.pathsep.join([os.environ.get("PATH", ""), "/usr/local/sbin", "/usr/sbin", "/sbin"])


def run(*line: str | Path, stdin: str | None = None, may_fail: bool = False, quiet: bool = False) -> str:
    """What a program says; its own words go to the terminal. Raises CalledProcessError."""
    ran = subprocess.run(
        [str(word) for word in line],
        input=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL if may_fail or quiet else sys.stderr,
        text=True,
        check=not may_fail,
        env={**os.environ, "PATH": search()},
    )
    return ran.stdout
