"""A headless Chromium, driven by its own protocol (DevTools): a page is opened, clicked, typed into, asked and drawn.

What is needed of the protocol are a dozen calls over one web socket. Libraries for it bring a browser, or a runtime of
Node.js, of some hundred megabytes with them.
"""

import base64
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any, Final

import websocket

from tests.support.programs import debian
from tests.support.waiting import until_outside

START_SECONDS_MAX: Final = 120.0
ANSWER_SECONDS_MAX: Final = 60.0
INSTALLED: Final = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
OPTIONS: Final = (
    "--headless",
    "--no-sandbox",  # it needs a user who is not root
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-extensions",
    "--disable-background-networking",
    "--hide-scrollbars",
    "--remote-debugging-port=0",
    "about:blank",
)
KEYS: Final = {"Enter": 13, "Tab": 9, "Escape": 27}


@cache
def chromium() -> tuple[str, dict[str, str]]:
    """The program, and what its environment needs: the machine's own, or Debian's package unpacked in the cache."""
    for name in INSTALLED:
        if found := shutil.which(name):
            return found, {}
    root = debian("chromium-headless-shell", has_libraries=True)
    libraries = sorted({str(path.parent) for path in root.glob("usr/lib/**/*.so*")})
    (program,) = root.glob("usr/lib/chromium/chromium-headless-shell")
    return str(program), {"LD_LIBRARY_PATH": ":".join(libraries)}


@contextmanager
def browser() -> Iterator["Page"]:
    """A browser with one page, ended at the end."""
    program, environment = chromium()
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        process = subprocess.Popen(
            [program, f"--user-data-dir={home}", *OPTIONS],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **environment},
        )
        try:
            page = Page(_connected(home, process))
            page.begin()
            yield page
            page.socket.close()
        finally:
            process.terminate()
            process.wait(ANSWER_SECONDS_MAX)


def _connected(home: Path, process: subprocess.Popen[bytes]) -> websocket.WebSocket:
    """A socket to the browser, whose port it writes into its own directory."""
    port = home / "DevToolsActivePort"

    def is_told() -> bool:
        assert process.poll() is None, f"Chromium ended with {process.returncode}"
        return port.exists() and port.read_text().count("\n") == 1

    until_outside(is_told, START_SECONDS_MAX, "Chromium is started")
    number, path = port.read_text().split("\n")
    url = f"ws://127.0.0.1:{number}{path}"
    return websocket.create_connection(url, timeout=ANSWER_SECONDS_MAX, suppress_origin=True)


@dataclass
class Page:
    """A page of the browser. `faults` are the errors that it has told of: of scripts, and of what was refused."""

    socket: websocket.WebSocket
    faults: list[str] = field(default_factory=list)
    _session: str = ""
    _numbers: Iterator[int] = field(default_factory=count)

    def begin(self) -> None:
        """Open a page without anything."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for name in ("Page", "Runtime", "Log", "Accessibility"):
            self.call(f"{name}.enable")

    def call(self, method: str, **parameters: Any) -> Any:
        """The answer to a call of the protocol. Raises AssertionError where it is refused."""
        number = next(self._numbers)
        about = {"sessionId": self._session} if self._session else {}
        self.socket.send(json.dumps({"id": number, "method": method, "params": parameters, **about}))
        while True:
            found = json.loads(self.socket.recv())
            if found.get("id") == number:
                assert "error" not in found, f"{method}: {found['error']}"
                return found["result"]
            self._note(found)

    def _note(self, event: dict[str, Any]) -> None:
        match event:
            case {"method": "Runtime.exceptionThrown", "params": {"exceptionDetails": details}}:
                self.faults.append(str(details.get("exception", {}).get("description", details["text"])))
            case {"method": "Log.entryAdded", "params": {"entry": {"level": "error", "text": text, **rest}}}:
                self.faults.append(f"{text} {rest.get('url', '')}")

    def size(self, width: int, height: int = 900, *, is_dark: bool = False) -> None:
        """Give the page a size, and the colours that its reader wants."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def open(self, url: str) -> None:
        """Go to an address, and wait until its page is there."""
        self.call("Page.navigate", url=url)
        self.until("document.readyState === 'complete'")

    def ask(self, expression: str) -> Any:
        """The value of an expression of JavaScript. Raises AssertionError where it throws."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, f"{expression}: {answer['exceptionDetails']}"
        return answer["result"].get("value")

    def until(self, expression: str) -> Any:
        """Wait for an expression to be true; its value."""
        found: list[Any] = []

        def holds() -> bool:
            found[:] = [self.ask(expression)]
            return bool(found[0])

        try:
            until_outside(holds, ANSWER_SECONDS_MAX, expression)
        except AssertionError as error:
            words = self.ask("document.body.innerText")
            raise AssertionError(f"{error}\nfaults: {self.faults}\n{words}") from None
        return found[0]

    def text(self, selector: str = "body") -> str:
        """The text that a reader sees of an element."""
        return str(self.ask(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''"))

    def click(self, selector: str) -> None:
        """Click the middle of an element, as a mouse does."""
        shown = json.dumps(selector)
        self.until(f"document.querySelector({shown}) !== null")
        x, y = self.ask(
            f"(() => {{ const found = document.querySelector({shown}); found.scrollIntoView({{block: 'center'}});"
            " const at = found.getBoundingClientRect(); return [at.x + at.width / 2, at.y + at.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, key: str) -> None:
        """Press a key: a letter, or one of `KEYS`."""
        code = KEYS.get(key)
        shared = {"key": key, "windowsVirtualKeyCode": code} if code else {"key": key}
        text = "\r" if key == "Enter" else "" if code else key
        self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **shared)
        self.call("Input.dispatchKeyEvent", type="keyUp", **shared)

    def write(self, selector: str, text: str) -> None:
        """Put a text into a field in the place of what is there."""
        self.ask(f"document.querySelector({json.dumps(selector)}).select()")
        self.ask(f"document.querySelector({json.dumps(selector)}).focus()")
        self.call("Input.insertText", text=text)

    def choose(self, selector: str, value: str) -> None:
        """Choose an option of a list."""
        field_ = f"document.querySelector({json.dumps(selector)})"
        self.ask(
            f"{field_}.value = {json.dumps(value)}; {field_}.dispatchEvent(new Event('change', {{bubbles: true}}))"
        )

    def spoken(self) -> list[tuple[str, str]]:
        """Role and name of everything that a screen reader meets, in its order."""
        nodes = self.call("Accessibility.getFullAXTree")["nodes"]
        return [
            (node["role"]["value"], node.get("name", {}).get("value", ""))
            for node in nodes
            if not node.get("ignored") and "role" in node
        ]

    def picture(self, path: Path) -> None:
        """Draw the whole page into a PNG file."""
        drawn = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(drawn["data"]))
