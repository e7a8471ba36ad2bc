"""docs/pictures/console.png: the clients of a made-up cluster in `kavka console`, as a headless Chromium draws them.

python -m tools.console_picture   rewrites the picture; its pixels depend on the fonts of the machine
"""

import sys
from pathlib import Path

from kavka_cli.target import Target
from kavka_top.console.server import Console
from tests.support.browser import browser
from tests.support.web import served
from tools.top_picture import LOOKS, Example

PICTURE = Path(__file__).parent.parent / "docs" / "pictures" / "console.png"
WIDTH, HEIGHT = 1400, 640


def main() -> int:
    """Draw the picture; returns the exit code."""
    name = "production"
    pages = Console({name: Target(name, "kafka-1.example.com:9092")}, 0.1, lambda _: Example(), "").application()
    with served(pages) as address, browser() as page:
        page.size(WIDTH, HEIGHT)
        page.open(f"{address}#/{name}/clients")
        page.until(f"document.querySelectorAll('svg.trend')[0]?.childElementCount >= {LOOKS}")
        page.picture(PICTURE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
