"""Who is who in the cluster: an authority, certificates of the components, kubeconfigs of those that ask the API."""

import base64
from pathlib import Path

import yaml

from e2e.machine import API, API_ADDRESS, KUBECONFIG, NODE, NODE_ADDRESS, STATE, run

PKI, ETC = STATE / "pki", STATE / "etc"
DAYS = "3650"
KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", DAYS)
OF_NODE = {
    "kubelet": f"/O=system:nodes/CN=system:node:{NODE}",
    "controller-manager": "/CN=system:kube-controller-manager",
    "scheduler": "/CN=system:kube-scheduler",
    "proxy": "/CN=system:kube-proxy",
    "coredns": "/CN=coredns",
    "volume-provisioner": "/CN=volume-provisioner",
}
"""Components that ask the API: CN is the user and O the group that Kubernetes sees."""
KUBERNETES = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local")


def issue_all() -> None:
    """Write keys, certificates and kubeconfigs, where there are none yet."""
    if KUBECONFIG.exists():
        return
    _authority()
    run("openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", PKI / "sa.key")
    names = [f"DNS:{name}" for name in ("localhost", *KUBERNETES)]
    _issue("apiserver", "/CN=kube-apiserver", *(f"IP:{ip}" for ip in (NODE_ADDRESS, API_ADDRESS, "127.0.0.1")), *names)
    _issue("kubelet-server", f"/CN={NODE}", f"IP:{NODE_ADDRESS}", f"DNS:{NODE}")
    _issue("front-proxy", "/CN=front-proxy")
    _issue("admin", "/O=system:masters/CN=admin")
    for name, subject in OF_NODE.items():
        _issue(name, subject)
        _write_kubeconfig(name, ETC / f"{name}.conf")
    _write_kubeconfig("admin", KUBECONFIG)


def _authority() -> None:
    extensions = ("basicConstraints=critical,CA:TRUE", "keyUsage=critical,keyCertSign,cRLSign,digitalSignature")
    words = [word for extension in extensions for word in ("-addext", extension)]
    ends = ("-keyout", PKI / "ca.key", "-out", PKI / "ca.crt")
    run("openssl", "req", "-x509", *KEY, "-subj", "/CN=kavka-e2e", *ends, *words, quiet=True)


def _issue(name: str, subject: str, *alternatives: str) -> None:
    """A key and a certificate of the authority."""
    extensions = ["basicConstraints=critical,CA:FALSE", "extendedKeyUsage=serverAuth,clientAuth"]
    extensions += [f"subjectAltName={','.join(alternatives)}"] if alternatives else []
    words = [word for extension in extensions for word in ("-addext", extension)]
    by = ("-CA", PKI / "ca.crt", "-CAkey", PKI / "ca.key")
    ends = ("-keyout", PKI / f"{name}.key", "-out", PKI / f"{name}.crt")
    run("openssl", "req", "-x509", *by, *KEY, "-subj", subject, *ends, *words, quiet=True)


def _write_kubeconfig(name: str, path: Path) -> None:
    """A kubeconfig with everything inside it."""
    user = {"client-certificate-data": _encoded(f"{name}.crt"), "client-key-data": _encoded(f"{name}.key")}
    cluster = {"server": API, "certificate-authority-data": _encoded("ca.crt")}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "kavka",
        "clusters": [{"name": "kavka", "cluster": cluster}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": "kavka", "context": {"cluster": "kavka", "user": name}}],
    }
    path.write_text(yaml.safe_dump(config))
    path.chmod(0o600)


def _encoded(name: str) -> str:
    return base64.b64encode((PKI / name).read_bytes()).decode()
