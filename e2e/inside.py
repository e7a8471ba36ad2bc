"""`python -m e2e.inside`: process 1 of the node. It runs in namespaces of its own, which end with it.

Each component is kept running: one that is killed, as a test may do, is started again after a second. NAME.pid and
NAME.log in `STATE/log` are those of a component, with process numbers as the node counts them.
"""

import os
import shutil
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from e2e.clusters.kubernetes import kubectl
from e2e.identities import ETC, PKI
from e2e.images import second_name
from e2e.machine import IMAGES, KUBECONFIG, LINK, NODE, NODE_ADDRESS, PODS, SERVICES, STATE, run, search
from tools.kube.programs import program

LOG = STATE / "log"
LOADED = STATE / "images-loaded"
OWN = (
    *("run/containerd", "run/netns", "var/lib/containerd", "var/lib/kubelet", "var/lib/cni"),
    *("var/log/pods", "var/log/containers", "etc/cni/net.d"),
)
"""Directories that the node's programs use, which are directories of the state here."""
SOCKET = STATE / "run/containerd/containerd.sock"
"""Where containerd is reached, from the node and from the machine."""
RESTART_SECONDS = 1.0
READY_SECONDS_MAX = 300.0
POLL_SECONDS = 0.1
ETCD = "http://127.0.0.1:2379"


def main() -> None:
    """Run the node until it is killed."""
    mount()
    join()
    keep("containerd", "containerd", "--config", str(ETC / "containerd.toml"))
    threading.Thread(target=load_images, daemon=True).start()
    keep("etcd", str(program("etcd")), *etcd())
    keep("kube-apiserver", str(program("kube-apiserver")), *api_server())
    wait_for(*kubectl(KUBECONFIG), "get", "--raw", "/readyz")
    for name, arguments in others().items():
        keep(name, str(program(name)), *arguments)
    reap()


def mount() -> None:
    """Put the state's directories where programs look for them. Mounts stay here; containers see those made later."""
    run("mount", "--make-rshared", "/")
    for name in OWN:
        target, source = Path("/") / name, STATE / name
        if not target.is_dir():
            with (STATE / "made").open("a") as made:
                made.write(f"{target}\n")
        target.mkdir(parents=True, exist_ok=True)
        source.mkdir(parents=True, exist_ok=True)
        run("mount", "--bind", source, target)
    shutil.copy(ETC / "cni.conflist", "/etc/cni/net.d")


def join() -> None:
    """Join the machine by the pair of interfaces that it made. Routes lead to it, and nowhere else."""
    wait_for("ip", "link", "show", "eth0")
    run("ip", "link", "set", "lo", "up")
    run("ip", "address", "add", f"{NODE_ADDRESS}/{LINK.partition('/')[2]}", "dev", "eth0")
    run("ip", "link", "set", "eth0", "up")
    # A program of the node needs some route to Services, or connect() fails before kube-proxy's rules see the packet.
    run("ip", "route", "add", SERVICES, "dev", "eth0", "src", NODE_ADDRESS)
    run("sysctl", "-qw", "net.ipv4.ip_forward=1")


def keep(name: str, *line: str) -> None:
    """Keep a program running."""
    threading.Thread(target=_keep, args=(name, line), daemon=True).start()


def _keep(name: str, line: tuple[str, ...]) -> None:
    while True:
        with (LOG / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                line, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={**os.environ, "PATH": search()}
            )
        (LOG / f"{name}.pid").write_text(f"{process.pid}\n")
        process.wait()
        time.sleep(RESTART_SECONDS)


def reap() -> None:
    """Take in orphans, as process 1 has to, for as long as the node lives."""
    while True:
        time.sleep(RESTART_SECONDS)
        for entry in Path("/proc").glob("[0-9]*/stat"):
            _bury(entry)


def _bury(entry: Path) -> None:
    """Wait for an orphan that has ended; the components' own threads wait for those."""
    try:
        words = entry.read_text().rpartition(")")[2].split()
        kept = {path.read_text().strip() for path in LOG.glob("*.pid")}
        if words[0] == "Z" and words[1] == "1" and entry.parent.name not in kept:
            os.waitpid(int(entry.parent.name), os.WNOHANG)
    except (OSError, ChildProcessError):
        return


def wait_for(*line: str) -> None:
    """Wait until a command succeeds. Raises TimeoutError."""
    deadline = time.monotonic() + READY_SECONDS_MAX
    while subprocess.run(line, capture_output=True, check=False, env={**os.environ, "PATH": search()}).returncode != 0:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{' '.join(line)} does not succeed")
        time.sleep(POLL_SECONDS)


def load_images() -> None:
    """Give containerd the images that were built."""
    LOADED.unlink(missing_ok=True)
    wait_for("ctr", "version")
    load(sorted(IMAGES.glob("*.tar")))


def load_newer() -> None:
    """Give the containerd of the node that runs the images that were built since. To be asked by the machine."""
    loaded = LOADED.stat().st_mtime
    load([image for image in sorted(IMAGES.glob("*.tar")) if image.stat().st_mtime > loaded])


def load(archives: Sequence[Path]) -> None:
    """Import archives of images, and give those of the Dockerfile their other name."""
    containerd = ("ctr", "--address", str(SOCKET), "--namespace", "k8s.io", "images")
    begun = time.time()
    for image in archives:
        run(*containerd, "import", image)
        if names := second_name(image):
            run(*containerd, "tag", "--force", *names)
    LOADED.touch()
    os.utime(LOADED, (begun, begun))  # an archive that was written meanwhile is newer


def etcd() -> tuple[str, ...]:
    """Without syncs: a test's data need not outlive a power cut."""
    data = ("--data-dir", str(STATE / "etcd"), "--unsafe-no-fsync", "--log-level", "warn")
    return (*data, "--listen-peer-urls", "http://127.0.0.1:2380")


def pair(name: str) -> tuple[str, str]:
    """The certificate and the key of a name."""
    return str(PKI / f"{name}.crt"), str(PKI / f"{name}.key")


def api_server() -> tuple[str, ...]:
    """Authorization, admission and aggregation as a real cluster has them."""
    authority, (certificate, key), (admin, admin_key) = pair("ca")[0], pair("apiserver"), pair("admin")
    proxy, proxy_key = pair("front-proxy")
    service_account = str(PKI / "sa.key")
    return (
        *("--etcd-servers", ETCD, "--advertise-address", NODE_ADDRESS, "--secure-port", "6443"),
        *("--service-cluster-ip-range", SERVICES, "--allow-privileged"),
        *("--authorization-mode", "Node,RBAC", "--enable-admission-plugins", "NodeRestriction"),
        *("--client-ca-file", authority, "--tls-cert-file", certificate, "--tls-private-key-file", key),
        *("--kubelet-certificate-authority", authority, "--kubelet-preferred-address-types", "InternalIP"),
        *("--kubelet-client-certificate", admin, "--kubelet-client-key", admin_key),
        *("--service-account-issuer", "https://kubernetes.default.svc.cluster.local"),
        *("--service-account-key-file", service_account, "--service-account-signing-key-file", service_account),
        *("--proxy-client-cert-file", proxy, "--proxy-client-key-file", proxy_key),
        *("--requestheader-client-ca-file", authority, "--requestheader-allowed-names", "front-proxy"),
        *("--requestheader-username-headers", "X-Remote-User", "--requestheader-group-headers", "X-Remote-Group"),
        *("--requestheader-extra-headers-prefix", "X-Remote-Extra-"),
    )


def others() -> dict[str, tuple[str, ...]]:
    """The components that ask the API, and their arguments."""
    authority, authority_key = pair("ca")
    return {
        "kube-controller-manager": (
            *("--kubeconfig", str(ETC / "controller-manager.conf"), "--bind-address", "127.0.0.1"),
            *("--leader-elect=false", "--use-service-account-credentials", "--root-ca-file", authority),
            *("--service-account-private-key-file", str(PKI / "sa.key")),
            *("--cluster-signing-cert-file", authority, "--cluster-signing-key-file", authority_key),
        ),
        "kube-scheduler": (
            *("--kubeconfig", str(ETC / "scheduler.conf"), "--bind-address", "127.0.0.1", "--leader-elect=false"),
        ),
        "kubelet": (
            *("--config", str(ETC / "kubelet.yaml"), "--kubeconfig", str(ETC / "kubelet.conf")),
            *("--hostname-override", NODE, "--node-ip", NODE_ADDRESS),
        ),
        # The settings of conntrack belong to the machine's first network, and are left alone.
        "kube-proxy": (
            *("--kubeconfig", str(ETC / "proxy.conf"), "--hostname-override", NODE, "--proxy-mode", "iptables"),
            *("--cluster-cidr", PODS, "--oom-score-adj", "0", "--conntrack-max-per-core", "0"),
            *("--conntrack-tcp-timeout-established", "0", "--conntrack-tcp-timeout-close-wait", "0"),
        ),
        "coredns": ("-conf", str(ETC / "Corefile")),
        "volume-provisioner": (
            *("--kubeconfig", str(ETC / "volume-provisioner.conf"), "--dir", str(STATE / "volumes")),
            *("--node", NODE),
        ),
    }


if __name__ == "__main__":
    main()
