"""`make package`: the distributions of Kavka, as wheels and source archives in dist/.

python -m tools.package [DIRECTORY]

Each member and the meta package `kavka` are built of what git tracks, in a copy that has LICENSE and NOTICE beside the
member's pyproject.toml, so that each archive carries them. Times are those of the last commit (`SOURCE_DATE_EPOCH`).
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
MEMBERS: Final = ("broker", "operator", "cli", "audit")
META: Final = ("pyproject.toml", "README.md")
LEGAL: Final = ("LICENSE", "NOTICE")


def tracked(*places: str) -> list[str]:
    """Return the files that git tracks in these places, relative to the root."""
    words = ["git", "ls-files", "-z", "--", *places]
    found = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [path for path in found.split("\0") if path]


def commit_time() -> str:
    """Return the time of the last commit, in seconds since 1970."""
    words = ["git", "log", "-1", "--format=%ct"]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def staged(stage: Path) -> list[Path]:
    """Copy each distribution's sources into a folder of its own below `stage`; returns the folders."""
    sources = {member: tracked(member) for member in MEMBERS} | {"kavka": list(META)}
    for name, files in sources.items():
        for file in files:
            target = stage / name / Path(file).relative_to(name if name in MEMBERS else ".")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / file, target)
        for file in LEGAL:
            shutil.copyfile(ROOT / file, stage / name / file)
    return [stage / name for name in sources]


def build(directory: Path) -> list[Path]:
    """Build all distributions into `directory`; returns the archives. Raises SystemExit with what the build printed."""
    directory.mkdir(parents=True, exist_ok=True)
    environment = os.environ | {"SOURCE_DATE_EPOCH": commit_time()}
    with tempfile.TemporaryDirectory(prefix="kavka-package-") as stage:
        for folder in staged(Path(stage)):
            words = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(directory.resolve()), str(folder)]
            built = subprocess.run(words, env=environment, check=False, capture_output=True, text=True)
            if built.returncode:
                sys.exit(f"{folder.name} cannot be built:\n{built.stdout}{built.stderr}")
    return sorted(path for path in directory.iterdir() if path.suffix in {".whl", ".gz"})


def main(arguments: list[str]) -> None:
    """Build, and print each archive with its size."""
    for archive in build(Path(arguments[0]) if arguments else ROOT / "dist"):
        sys.stdout.write(f"{archive.stat().st_size / 1e6:6.2f} MB  {archive}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
