"""`make generate`: everything in the tree that is made from something else, in one go.

python -m tools.generate            rewrites
python -m tools.generate --check    says what has drifted
"""

import subprocess
import sys

GENERATORS = (
    "tools.generate_messages",
    "tools.config_types",
    "tools.definitions.generate",
    "tools.compat_table",
    "tools.configs_page",
    "tools.metrics_page",
    "tools.dashboards",
    "tools.command_page",
    "tools.packaged_examples",
    "tools.audit_tables_page",
    "tools.pictures",
    "tools.top_picture",
)


def main() -> int:
    """Run all generators; returns the worst of their exit statuses."""
    arguments = [argument for argument in sys.argv[1:] if argument == "--check"]
    commands = [[sys.executable, "-m", module, *arguments] for module in GENERATORS]
    return max(subprocess.run(command, check=False).returncode for command in commands)


if __name__ == "__main__":
    sys.exit(main())
