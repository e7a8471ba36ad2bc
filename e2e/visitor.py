"""A visitor of the operator's page in a pod: `visitor.py ADDRESS NAMESPACE/CLUSTER`.

It brings the token of its service account.
"""

import json
import sys
import time
import urllib.error
import urllib.request
from http.client import HTTPResponse
from pathlib import Path

TOKEN = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")
SECONDS_MAX = 60.0
POLL_SECONDS = 0.5
ADDRESS, CLUSTER = sys.argv[1:]


def asked(path: str, token: str = "") -> HTTPResponse | int:
    """The answer, or the code of a refusal; asked again while nothing answers."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    while True:
        try:
            answer: HTTPResponse = urllib.request.urlopen(
                urllib.request.Request(f"{ADDRESS}{path}", headers=headers), timeout=SECONDS_MAX
            )
            return answer
        except urllib.error.HTTPError as error:
            if error.code != 503:
                return error.code
        except OSError as error:
            print(error)
        time.sleep(POLL_SECONDS)


def watch(events: HTTPResponse) -> None:
    """Tell which topics are shown, and each change of them, until the stream ends."""
    last = ""
    for line in events:
        if line.startswith(b"data: "):
            found = json.loads(line[len(b"data: ") :])
            shown = ", ".join(sorted(row["key"] for sheet in found.get("sheets", ()) for row in sheet["rows"]))
            if shown != last:
                print(f"shown: {shown}")
            last = shown
    print("the stream has ended")


page = asked("/")
assert isinstance(page, HTTPResponse)
print("page asks for a token:", b'data-login="token"' in page.read())
print(f"without a token: {asked('/events')}")
stream = asked(f"/events?cluster={CLUSTER}&view=topics", TOKEN.read_text())
if isinstance(stream, HTTPResponse):
    watch(stream)
else:
    print(f"with the token: {stream}")
