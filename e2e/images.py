"""`python -m e2e.images`: build the images of the Dockerfile without a registry, for the node to load.

The base is made here, of Debian's own packages, and carries the very name that the Dockerfile's FROM has; buildah then
builds as with any other base. An archive of an image is kept until what it was made from changes. What the builder
stores is there while a build runs: another one begins with other sources, which make nearly all layers others.
"""

import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from e2e.machine import BUILDER_PACKAGES, CACHE, IMAGES, demand, run
from tools.spark_home import spark_jars

ROOT = Path(__file__).parents[1]
BASE = "python:3.11-slim"
BASE_PACKAGES = ("python3", "python-is-python3", "python3-pip", "ca-certificates")
LEFT_OUT = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*")
SUITE = "bookworm"  # its Python is the one that BASE names
TARGETS = ("broker", "operator", "audit", "audit-spark")
JARS = "jars"
"""What the Dockerfile calls the directory with Spark's jars."""
TAG = "e2e"
NEXT_TAG = "e2e-next"
"""Another name of the very same images, for a roll to another image."""
BROKEN_TAG = "e2e-broken"
LAST_WORDS = "no room for wings"
"""What an image that does not start says before it ends."""
SOURCES = (
    "Dockerfile",
    ".dockerignore",
    "requirements",
    "broker",
    "operator",
    "cli",
    "audit",
    "tools/image",
    "tools/spark",
)
PATHS = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
POLICY, REGISTRIES = CACHE / "policy.json", CACHE / "registries.conf"
QUIET = ("--quiet", "--signature-policy", str(POLICY))
BASE_TAR = CACHE / "base.tar"
STORAGE, RUN_STATE = CACHE / "buildah", CACHE / "buildah-run"
STORAGE_BYTES_MAX = 16 * 2**20
"""What the builder may keep between two builds; more of it is removed, however it came there."""
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
PAUSE = """\
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static void end(int number) { (void)number; _exit(0); }
static void reap(int number) { (void)number; while (waitpid(-1, 0, WNOHANG) > 0); }
int main(void) {
    signal(SIGINT, end); signal(SIGTERM, end); signal(SIGCHLD, reap);
    for (;;) pause();
}
"""
BROKEN = f"""\
#include <stdio.h>
int main(void) {{ fputs("{LAST_WORDS}\\n", stderr); return 1; }}
"""


def build_all(targets: Sequence[str] = TARGETS) -> None:
    """Build what is lacking: the small ones of the tests, the base, and these of the Dockerfile."""
    demand(BUILDER_PACKAGES)
    IMAGES.mkdir(parents=True, exist_ok=True)
    build_program(IMAGES / "pause.tar", "kavka.local/pause:1", PAUSE)
    build_program(IMAGES / "broken.tar", f"kavka.local/broker:{BROKEN_TAG}", BROKEN)
    build_base(BASE_TAR)
    stamp = checksum()
    lacking = [target for target in targets if not is_made(target, stamp)]
    with builder(lacking):
        for target in lacking:
            build(target, IMAGES / f"{target}.tar")
            stamp_of(target).write_text(stamp)


def stamp_of(name: str) -> Path:
    """The file that says what an archive was made from."""
    return CACHE / f"{name}.stamp"


def is_made(name: str, stamp: str) -> bool:
    """Whether there is an archive of an image, made from just this."""
    made = stamp_of(name)
    return (IMAGES / f"{name}.tar").exists() and made.exists() and made.read_text() == stamp


def checksum() -> str:
    """What the images are made from, as a few letters."""
    listing = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *SOURCES]
    names = subprocess.run(listing, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    content = [f"{name}\0".encode() + (ROOT / name).read_bytes() for name in sorted(names) if (ROOT / name).is_file()]
    return hashlib.sha256(b"\0".join(content)).hexdigest()


def build_program(tar: Path, name: str, source: str) -> None:
    """An image of one small program in C."""
    if tar.exists():
        return
    with tempfile.TemporaryDirectory() as scratch:
        text, program, layer = (Path(scratch) / name for name in ("main.c", "main", "layer.tar"))
        text.write_text(source)
        run("gcc", "-Os", "-s", "-static", "-o", program, text)
        with tarfile.open(layer, "w") as archive:
            archive.add(program, "main")
        write_image(tar, name, layer, {"Entrypoint": ["/main"], "User": "65535:65535"})


def build_base(tar: Path) -> None:
    """Debian's Python under the name that the Dockerfile asks for."""
    if not tar.exists():
        with tempfile.TemporaryDirectory() as scratch:
            layer = Path(scratch) / "layer.tar"
            leave = [f"--dpkgopt=path-exclude={pattern}" for pattern in LEFT_OUT]
            include = f"--include={','.join(BASE_PACKAGES)}"
            run("mmdebstrap", "--quiet", "--variant=minbase", include, *leave, SUITE, layer)
            environment = [f"PATH={PATHS}", "PIP_BREAK_SYSTEM_PACKAGES=1", "LANG=C.UTF-8"]
            write_image(tar, BASE, layer, {"Cmd": ["python3"], "Env": environment})


def write_image(tar: Path, name: str, layer: Path, config: dict[str, object]) -> None:
    """An archive of one image of one layer, as containerd and buildah read it."""
    digest = hashlib.sha256(layer.read_bytes()).hexdigest()
    image = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Env": [f"PATH={PATHS}"], **config},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
        "history": [{"created_by": "e2e.images"}],
    }
    text = json.dumps(image).encode()
    place = f"{hashlib.sha256(text).hexdigest()}.json"
    manifest = json.dumps([{"Config": place, "RepoTags": [name], "Layers": [f"{digest}.tar"]}]).encode()
    new = tar.with_suffix(".new")
    with tarfile.open(new, "w") as archive:
        for path, data in ((place, text), ("manifest.json", manifest)):
            info = tarfile.TarInfo(path)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
        archive.add(layer, f"{digest}.tar")
    new.rename(tar)


def build(target: str, tar: Path, *, root: Path = ROOT, tag: str = TAG) -> None:
    """One target of a Dockerfile. Its steps see the machine's network and its certificates, so that pip works."""
    name = f"kavka.local/{target}:{tag}"
    seen = f"{CERTIFICATES}:{CERTIFICATES}:ro"
    how: tuple[str, ...] = ("--pull-never", "--network", "host", "--layers", "--timestamp", "0", "--volume", seen)
    how += ("--build-context", f"{JARS}={spark_jars()}") if target == "audit-spark" else ()
    buildah("build", *QUIET, *how, "--target", target, "--tag", name, str(root))
    new = tar.with_suffix(".new")
    new.unlink(missing_ok=True)  # buildah adds to no archive
    buildah("push", *QUIET, name, f"docker-archive:{new}:{name}")
    new.rename(tar)


def named_in(archive: Path) -> str:
    """Return the name that an archive of an image says."""
    with tarfile.open(archive) as packed:
        manifest = packed.extractfile("manifest.json")
        assert manifest is not None, archive
        name: str = json.load(manifest)[0]["RepoTags"][0]
    return name


def second_name(archive: Path) -> tuple[str, str] | None:
    """Return the name that an archive of the Dockerfile says, and the other for a roll; None for other images."""
    if archive.stem not in TARGETS:
        return None
    name = named_in(archive)
    return name, f"{name.removesuffix(TAG)}{NEXT_TAG}"


def pushed(archive: Path, names: Sequence[str]) -> None:
    """Push an image to a registry, under each of these names; the login is that of `buildah login`, or of docker."""
    buildah("pull", *QUIET, f"docker-archive:{archive}")
    try:
        for name in names:
            buildah("push", *QUIET, named_in(archive), f"docker://{name}")
    finally:
        sweep()


@contextmanager
def builder(lacking: Sequence[str]) -> Iterator[None]:
    """What buildah needs to build what is lacking; nothing of it is left afterwards, whatever came of the builds."""
    if not lacking:
        yield
        return
    sweep()
    buildah("pull", *QUIET, f"docker-archive:{BASE_TAR}")
    try:
        yield
    finally:
        sweep()


def sweep() -> None:
    """Empty the builder's storage, also of what builds left that were ended, and of what another driver kept there."""
    buildah("rm", "--all")
    buildah("rmi", "--all", "--force")
    if size_bytes(STORAGE) > STORAGE_BYTES_MAX:
        shutil.rmtree(STORAGE)
        shutil.rmtree(RUN_STATE, ignore_errors=True)


def size_bytes(directory: Path) -> int:
    """The room that a directory takes on the disk."""
    return int(run("du", "--summarize", "--block-size=1", directory).split()[0])


def buildah(command: str, *arguments: str) -> None:
    """Run buildah with all it has in the cache. It asks no namespaces of the machine, and overlays as the node does."""
    POLICY.write_text('{"default": [{"type": "insecureAcceptAnything"}]}\n')
    REGISTRIES.write_text("unqualified-search-registries = []\n")
    os.environ.update(CONTAINERS_REGISTRIES_CONF=str(REGISTRIES), BUILDAH_ISOLATION="chroot")
    places = ("--root", str(STORAGE), "--runroot", str(RUN_STATE), "--storage-driver", "overlay")
    run("buildah", *places, command, *arguments)


if __name__ == "__main__":
    build_all()
