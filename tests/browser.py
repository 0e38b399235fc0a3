"""Debian's chromium without a window: pages, what they ask for, and what they say on the console.

The browser is told through a pipe what to do, in its DevTools protocol: JSON messages, each with a
zero byte behind it.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
DESKTOP, TELEPHONE = (1280, 900), (390, 844)

_PATIENCE = 60.0
# Nothing but this machine has an address.
_OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage",
    "--disable-background-networking", "--remote-debugging-pipe",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)  # fmt: skip


@dataclass
class Page:
    """A page that is open: what it has asked for, and what it has said on its console."""

    browser: Browser
    session: str
    requests: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)

    def open(self, url: str, size: tuple[int, int] = DESKTOP) -> None:
        """Load a page at a size of the window, and wait until it is there."""
        self.requests.clear()
        self.messages.clear()
        width, height = size
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.call("Emulation.setDeviceMetricsOverride", **metrics)
        self.browser.loaded = False
        found = self.call("Page.navigate", url=url)
        assert "errorText" not in found, (url, found["errorText"])
        self.browser.read_until(lambda: self.browser.loaded)

    def evaluate(self, script: str) -> Any:
        """What an expression of JavaScript gives, if it is a promise what that gives."""
        options = {"returnByValue": True, "awaitPromise": True}
        found = self.call("Runtime.evaluate", expression=script, **options)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def wait_for(self, script: str) -> None:
        """Wait until an expression of JavaScript is true."""
        end = time.monotonic() + _PATIENCE
        while not self.evaluate(script):
            assert time.monotonic() < end, f"in {_PATIENCE} s this did not come true: {script}"
            time.sleep(0.05)

    def screenshot(self, path: Path) -> None:
        """Write what the window shows as a PNG file."""
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))

    def call(self, method: str, **parameters: Any) -> Any:
        return self.browser.call(method, self.session, **parameters)

    def take(self, method: str, parameters: dict[str, Any]) -> None:
        """Note what the browser tells of this page."""
        if method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif method == "Log.entryAdded":
            entry = parameters["entry"]
            self.messages.append(f"{entry['level']}: {entry['text']} {entry.get('url', '')}")
        elif method == "Runtime.consoleAPICalled":
            words = [str(one.get("value", one.get("description"))) for one in parameters["args"]]
            self.messages.append(f"{parameters['type']}: {' '.join(words)}")
        elif method == "Runtime.exceptionThrown":
            self.messages.append(f"error: {parameters['exceptionDetails']}")


class Browser:
    """A running browser with one page."""

    def __init__(self, told: int, heard: int) -> None:
        self._told, self._heard = told, heard
        self._rest, self._number = b"", 0
        self._answers: dict[int, Any] = {}
        self._page: Page | None = None
        self.loaded = False

    def page(self) -> Page:
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        found = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._page = Page(self, found["sessionId"])
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._page.call(f"{domain}.enable")
        return self._page

    def call(self, method: str, session: str | None = None, **parameters: Any) -> Any:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        os.write(self._told, json.dumps(message).encode() + b"\0")
        number = self._number
        self.read_until(lambda: number in self._answers)
        answer = self._answers.pop(number)
        assert "error" not in answer, (method, answer["error"])
        return answer["result"]

    def read_until(self, is_done: Any) -> None:
        end = time.monotonic() + _PATIENCE
        while not is_done():
            ready, _, _ = select.select([self._heard], [], [], max(0.0, end - time.monotonic()))
            assert ready, f"the browser was silent for {_PATIENCE} s"
            piece = os.read(self._heard, 1 << 20)
            assert piece, "the browser has ended"
            *whole, self._rest = (self._rest + piece).split(b"\0")
            for message in whole:
                self._take(json.loads(message))

    def _take(self, message: dict[str, Any]) -> None:
        if "id" in message:
            self._answers[message["id"]] = message
        elif message["method"] == "Page.loadEventFired":
            self.loaded = True
        elif self._page is not None:
            self._page.take(message["method"], message["params"])


@contextmanager
def browser_page(folder: Path) -> Iterator[Page]:
    """A page of a new browser, which keeps what it must keep in a folder, and ends afterwards."""
    assert CHROMIUM is not None
    (child_reads, told), (heard, child_writes) = os.pipe(), os.pipe()
    # The browser reads from 3 and writes to 4.
    shell = f'exec "$0" "$@" 3</dev/fd/{child_reads} 4>/dev/fd/{child_writes}'
    command = ["sh", "-c", shell, CHROMIUM, *_OPTIONS, f"--user-data-dir={folder / 'profile'}"]
    process = subprocess.Popen(
        command, pass_fds=(child_reads, child_writes), stderr=subprocess.DEVNULL
    )
    os.close(child_reads)
    os.close(child_writes)
    try:
        browser = Browser(told, heard)
        yield browser.page()
        browser.call("Browser.close")
    finally:
        os.close(told)
        os.close(heard)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
