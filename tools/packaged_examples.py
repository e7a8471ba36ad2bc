"""cli/kavka_cli/examples: the resource files of examples/, copied, since an installation has no work tree.

python -m tools.packaged_examples            rewrites the copies
python -m tools.packaged_examples --check    says whether they have drifted
"""

import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
COPIES = ROOT / "cli" / "kavka_cli" / "examples"
HEAD = "# Copied from examples/{name} by `make generate`, as an installation has no work tree. Do not edit.\n"


def copies() -> dict[Path, str]:
    """Return the text of each copy, by its file."""
    return {
        COPIES / file.name: HEAD.format(name=file.name) + file.read_text(encoding="utf-8")
        for file in sorted(EXAMPLES.glob("*.yaml"))
    }


def main(arguments: list[str]) -> int:
    """Write the copies or compare them; the exit code."""
    wanted = copies()
    kept = {file: file.read_text(encoding="utf-8") for file in COPIES.glob("*.yaml")}
    stale = sorted(file for file in wanted.keys() | kept.keys() if wanted.get(file) != kept.get(file))
    for file in stale:
        if "--check" in arguments:
            sys.stderr.write(f"{file.relative_to(ROOT)} has drifted from examples/; run `make generate`\n")
        elif file in wanted:
            file.write_text(wanted[file], encoding="utf-8")
        else:
            file.unlink()
    return 1 if stale and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
