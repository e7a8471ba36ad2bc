"""Write the dashboards, or with `--check` compare them."""

import json
import sys
from pathlib import Path
from typing import Final

from tools.dashboards.analytics import ANALYTICS
from tools.dashboards.audit import AUDIT
from tools.dashboards.broker import BROKER
from tools.dashboards.fleet import FLEET
from tools.dashboards.operator import OPERATOR
from tools.dashboards.panels import Dashboard, dashboard_json
from tools.dashboards.quota import QUOTA_AND_THROTTLE

FOLDER: Final = Path(__file__).parents[2] / "examples/monitoring"
DASHBOARDS: Final = {
    "dashboards/fleet.json": FLEET,
    "dashboards/quota-and-throttle.json": QUOTA_AND_THROTTLE,
    "dashboards/broker.json": BROKER,
    "dashboards/audit.json": AUDIT,
    "operator/dashboard.json": OPERATOR,
    "analytics/dashboard.json": ANALYTICS,
}


def text_of(dashboard: Dashboard) -> str:
    """The whole file."""
    return json.dumps(dashboard_json(dashboard), indent=1) + "\n"


def main() -> int:
    """Write the files, or compare them."""
    is_check, drifted = sys.argv[1:] == ["--check"], 0
    for name, dashboard in DASHBOARDS.items():
        path, text = FOLDER / name, text_of(dashboard)
        if not is_check:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            print(f"examples/monitoring/{name} has drifted from tools/dashboards: run `make generate`")
            drifted += 1
    return min(1, drifted)


if __name__ == "__main__":
    sys.exit(main())
