"""Where a program of Kubernetes is: in `KUBEBUILDER_ASSETS`, or in the cache, built there once.

A build takes some four minutes of two processors where nothing of it is in Go's own cache, and 200 MB of modules; Go
fetches them from where its own environment says. The cache knows a build by the version of Kubernetes and by a checksum
of what it was made from, so that a change of go.mod or of a source builds again.
"""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from functools import cache as once
from pathlib import Path

from tools.cache import cache, cache_home

MODULE = Path(__file__).parent / "go"
OTHER_MODULES = {"sigs.k8s.io/kind": Path(__file__).parent / "kind"}
"""Modules of their own, by the packages that are built from them: a change of one builds no other program again."""
VARIABLE = "KUBEBUILDER_ASSETS"
BUILD_SECONDS_MAX = 1800
FETCH_SECONDS_MAX = 600

PACKAGES = {
    "./control": ("etcd", "kube-apiserver", "kube-controller-manager", "kubectl"),
    "./kstatus": ("kstatus",),
    "./node": ("kubelet", "kube-proxy", "kube-scheduler", "volume-provisioner"),
    "./coredns": ("coredns",),
    "helm.sh/helm/v3/cmd/helm": ("helm",),
    "sigs.k8s.io/kind": ("kind",),
}
"""A package of Go, and the names of the programs that its one binary is."""

FOR_TESTS = (*PACKAGES["./control"], *PACKAGES["./kstatus"], *PACKAGES["helm.sh/helm/v3/cmd/helm"])


class NoModulesError(Exception):
    """Go cannot fetch the modules that a program is built from."""


def program(name: str) -> Path:
    """The path of a program, which is built where it is not there yet. Raises NoModulesError."""
    if (found := given(name)) is not None:
        return found
    package = package_of(name)
    path = built(package) / name
    if not path.exists():
        build(package)
    return path


def are_here(*names: str) -> bool:
    """Whether all these programs are there, or have been built."""
    return all(given(name) is not None or (built(package_of(name)) / name).exists() for name in names)


def given(name: str) -> Path | None:
    """The program in the directory that `KUBEBUILDER_ASSETS` names; None where it has none."""
    found = shutil.which(name, path=os.environ[VARIABLE]) if os.environ.get(VARIABLE) else None
    return None if found is None else Path(found)


def package_of(name: str) -> str:
    """The package of Go that a program is built from."""
    return next(package for package, names in PACKAGES.items() if name in names)


def module_of(package: str) -> Path:
    """The directory of the module that pins what a package is built from."""
    return OTHER_MODULES.get(package, MODULE)


def built(package: str) -> Path:
    """The directory of a build, whether it is there or not."""
    return cache_home() / "kavka" / "kube" / f"{version()}-{checksum(package)}"


@once
def version() -> str:
    """The version of Kubernetes that go.mod pins."""
    found = re.search(r"k8s\.io/kubernetes (v[0-9.]+)$", (MODULE / "go.mod").read_text(), re.MULTILINE)
    assert found is not None, "go.mod requires no k8s.io/kubernetes"
    return found[1]


@once
def checksum(package: str) -> str:
    """What a build is made from, as a few letters."""
    module = module_of(package)
    own = sorted((module / package).glob("*.go")) if package.startswith(".") else [module / "go.mod"]
    content = b"".join(path.read_bytes() for path in (module / "go.mod", module / "go.sum", *own))
    return hashlib.sha256(package.encode() + content).hexdigest()[:16]


def build(package: str) -> None:
    """Build one package into the cache, while no other process does. Raises NoModulesError."""
    with (cache("kube") / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not built(package).exists():
            fetch(package)
            compile_into(built(package), package)


def fetch(package: str) -> None:
    """Let Go fetch the modules of one package. Raises NoModulesError."""
    line = ["go", "list", "-deps", "-f", "{{.Module}}", package]
    try:
        subprocess.run(
            line,
            cwd=module_of(package),
            env=environment(),
            check=True,
            capture_output=True,
            text=True,
            timeout=FETCH_SECONDS_MAX,
        )
    except subprocess.CalledProcessError as error:
        raise NoModulesError(f"Go cannot fetch the modules of {package}: {error.stderr.strip()}") from None
    except subprocess.TimeoutExpired:
        raise NoModulesError(f"Go fetches the modules of {package} for more than {FETCH_SECONDS_MAX} s") from None


def compile_into(target: Path, package: str) -> None:
    """Build one package, and its directory appears as a whole."""
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        first, *others = PACKAGES[package]
        directory = Path(scratch) / "bin"
        line = ["nice", "go", "build", "-ldflags", f"-s -w {stamps()}", "-o", str(directory / first), package]
        subprocess.run(line, cwd=module_of(package), env=environment(), check=True, timeout=BUILD_SECONDS_MAX)
        for name in others:
            (directory / name).symlink_to(first)
        directory.rename(target)


def stamps() -> str:
    """The linker's words for the version that the programs say they are."""
    major, minor, _ = version().removeprefix("v").split(".")
    place = "k8s.io/component-base/version"
    return f"-X {place}.gitVersion={version()} -X {place}.gitMajor={major} -X {place}.gitMinor={minor}"


def environment() -> dict[str, str]:
    """Static programs, no other tool chain than the one that is here, and nothing but what go.sum names."""
    flags = "-mod=readonly -trimpath -buildvcs=false"
    return {**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": flags}
