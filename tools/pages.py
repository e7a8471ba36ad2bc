"""Writing a page that is made from something else, or saying that it is not what it would be."""

import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def write_or_check(page: Path, text: str, source: str) -> int:
    """Write the page, or with `--check` among the arguments compare it; returns the exit code."""
    if "--check" not in sys.argv[1:]:
        page.write_text(text, encoding="utf-8")
        return 0
    if page.exists() and page.read_text(encoding="utf-8") == text:
        return 0
    sys.stderr.write(f"{page.relative_to(ROOT)} has drifted from the {source}; run `make generate`\n")
    return 1
