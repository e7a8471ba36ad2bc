"""Why a node does not serve, in its own words: the page /readyz of its admin port."""

import json
import urllib.error
import urllib.request

RESPONSE_BYTES_MAX = 64 * 1024
TIMEOUT_SECONDS = 1.0


def obstacles(address: str) -> tuple[str, ...]:
    """The reasons that a node gives on its admin port for not serving; empty if it serves or does not answer."""
    try:
        urllib.request.urlopen(f"http://{address}/readyz", timeout=TIMEOUT_SECONDS).close()
    except urllib.error.HTTPError as error:
        with error:
            return _because(error.read(RESPONSE_BYTES_MAX))
    except OSError:
        pass
    return ()


def _because(body: bytes) -> tuple[str, ...]:
    try:
        because = json.loads(body)["because"]
        return tuple(map(str, because.values()))
    except (ValueError, TypeError, KeyError, AttributeError):
        return ()
