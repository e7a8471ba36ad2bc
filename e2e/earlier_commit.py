"""An earlier commit of this repository, from which an installation is upgraded: its chart and its images.

`FORMER` is moved on by hand when a version is released. Without the history of the repository there is no such commit.
"""

import shutil
import subprocess
import tarfile
from pathlib import Path
from tempfile import NamedTemporaryFile

from e2e.images import ROOT, build, builder, is_made, stamp_of
from e2e.kubectl import SECONDS_MAX
from e2e.machine import CACHE, IMAGES
from e2e.release import BROKER_IMAGE, OPERATOR_IMAGE, RELEASE, helm

FORMER = "c1c617a27176a9df76299f50d3c1cf36b0a07216"
FORMER_TAG = "e2e-former"
TARGETS = ("broker", "operator")


def is_known() -> bool:
    """Whether the repository has the commit."""
    line = ["git", "cat-file", "-e", f"{FORMER}^{{commit}}"]
    return subprocess.run(line, cwd=ROOT, capture_output=True, check=False).returncode == 0


def tree() -> Path:
    """The files of the commit, taken out once."""
    place = CACHE / f"former-{FORMER[:12]}"
    if not place.exists():
        new = CACHE / "new-former"
        with NamedTemporaryFile(suffix=".tar") as packed:
            subprocess.run(["git", "archive", "--output", packed.name, FORMER], cwd=ROOT, check=True)
            with tarfile.open(packed.name) as archive:
                archive.extractall(new, filter="data")
        for older in CACHE.glob("former-*/"):
            shutil.rmtree(older)
        new.rename(place)
    return place


def build_former() -> None:
    """Build the images of the commit, where they are not there yet."""
    lacking = [target for target in TARGETS if is_known() and not is_made(f"former-{target}", FORMER)]
    with builder(lacking):
        for target in lacking:
            build(target, IMAGES / f"former-{target}.tar", root=tree(), tag=FORMER_TAG)
            stamp_of(f"former-{target}").write_text(FORMER)


def install_former() -> None:
    """Install the chart of the commit, with its images."""
    images = {"image": OPERATOR_IMAGE, "brokerImage": BROKER_IMAGE}
    words = [
        word
        for name, place in images.items()
        for word in ("--set", f"{name}.repository={place},{name}.tag={FORMER_TAG}")
    ]
    how = ("--create-namespace", "--take-ownership", "--wait", f"--timeout={SECONDS_MAX}s")
    helm("upgrade", "--install", RELEASE, tree() / "charts/kavka", *how, *words)
