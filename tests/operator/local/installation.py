"""The wheels of `make package` in an environment without a work tree: what a user has after `pip install`.

Third-party libraries are those of the tests; that the wheels require no others and no fewer is in
tests/tidy/test_installation.py. So no index is asked.
"""

import os
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterable
from pathlib import Path
from typing import Final

OF_NETWORK: Final = ("http_proxy", "https_proxy", "no_proxy", "ssl_cert_file", "requests_ca_bundle")


def install(archives: Iterable[Path], directory: Path, name: str = "venv") -> None:
    """Make an environment in a directory, and put the wheels into it."""
    venv.create(directory / name, with_pip=False, symlinks=True)
    python = directory / name / "bin" / "python"
    wheels = [str(archive) for archive in archives if archive.suffix == ".whl"]
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q", "--no-index", "--no-deps", *wheels]
    subprocess.run(pip, check=True)
    (site,) = (directory / name / "lib").glob("python*/site-packages")
    (site / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")  # its own .pth files do not count


def settings_of_pip() -> dict[str, str]:
    """The variables by which pip finds its index on this machine: its own, the proxies and whom to trust."""
    return {name: value for name, value in os.environ.items() if name.startswith("PIP_") or name.lower() in OF_NETWORK}


def environment(home: Path) -> dict[str, str]:
    """The variables of a user with this home, and no others."""
    return {"HOME": str(home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
