"""`kavka up` whose brokers a test may harm: `python -m kavka_pytest.up_with_faults up --ephemeral ...`.

Its brokers are `kavka_pytest.kavka_broker_with_faults`; all else is the command as it is.
"""

import sys

from kavka_cli import main
from kavka_operator.platform.local import node_processes

if __name__ == "__main__":
    # The name begins with that of the broker's module, by which an orphan is known.
    node_processes.BROKER = (sys.executable, "-m", "kavka_pytest.kavka_broker_with_faults")
    main()
