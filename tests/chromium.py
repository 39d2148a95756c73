"""A real browser without a window, for tests of pages: what a page drew, asked for, and complained of."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from websockets.sync.client import connect
from websockets.sync.connection import Connection

__all__ = ["Browser", "Page", "dumped", "installed", "running"]

_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-port=0",
)
_SECONDS = 60


def installed() -> str | None:
    """Where the browser is, or None."""
    return shutil.which("chromium")


def dumped(url: str) -> str:
    """The document of a page as the browser has it when it has loaded, run once and asked for nothing else."""
    program = installed()
    assert program is not None, "chromium is not installed"
    with tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as profile:
        flags = [flag for flag in _FLAGS if not flag.startswith("--remote-debugging")]
        command = [program, *flags, f"--user-data-dir={profile}", "--dump-dom", url]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=_SECONDS)
    return done.stdout


@dataclass
class Page:
    """What became of a page: `requests` are URLs it asked for, `complaints` errors, warnings and refused policies."""

    browser: Browser
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def evaluate(self, script: str) -> Any:
        """The value of a JavaScript expression in the page; a promise is waited for."""
        parameters = {"expression": script, "returnByValue": True, "awaitPromise": True}
        answer = self.browser.ask("Runtime.evaluate", parameters)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait_for(self, script: str) -> Any:
        """The value of an expression once it is true."""
        until = time.monotonic() + _SECONDS
        while not (value := self.evaluate(script)):
            assert time.monotonic() < until, f"never true: {script}; {self.complaints}"
            time.sleep(0.02)
        return value

    def screenshot(self) -> bytes:
        """The whole page as PNG."""
        answer = self.browser.ask("Page.captureScreenshot", {"format": "png", "captureBeyondViewport": True})
        return base64.b64decode(answer["data"])


class Browser:
    """One tab of a running browser."""

    def __init__(self, socket: Connection) -> None:
        self._socket = socket
        self._number = 0
        self._page = Page(self)
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable", {})

    def open(self, url: str, *, width: int = 1280, height: int = 900, dark: bool = False, phone: bool = False) -> Page:
        """A page, loaded; sizes in CSS pixels."""
        self.ask("Page.navigate", {"url": "about:blank"})
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone}
        self.ask("Emulation.setDeviceMetricsOverride", metrics)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", {"features": [scheme]})
        self._page = Page(self)
        self.ask("Page.navigate", {"url": url})
        self._page.wait_for(f"document.readyState === 'complete' && location.href === {json.dumps(url)}")
        return self._page

    def ask(self, method: str, parameters: dict[str, Any]) -> dict[str, Any]:
        """The answer to one command; what happens meanwhile is kept with the page."""
        self._number += 1
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv(timeout=_SECONDS))
            if message.get("id") == self._number:
                assert "error" not in message, message["error"]
                result: dict[str, Any] = message["result"]
                return result
            self._note(message)

    def _note(self, event: dict[str, Any]) -> None:
        facts = event.get("params", {})
        match event.get("method"):
            case "Network.requestWillBeSent":
                self._page.requests.append(facts["request"]["url"])
            case "Runtime.exceptionThrown":
                self._page.complaints.append(json.dumps(facts["exceptionDetails"]))
            case "Runtime.consoleAPICalled":
                self._page.complaints.append(json.dumps([facts["type"], facts["args"]]))
            case "Log.entryAdded":
                self._page.complaints.append(json.dumps(facts["entry"]))
            case "Page.javascriptDialogOpening":
                self._page.complaints.append(f"dialog: {facts['message']}")


@contextmanager
def running() -> Iterator[Browser]:
    """A browser with a profile of its own, ended and its profile removed afterwards."""
    program = installed()
    assert program is not None, "chromium is not installed"
    with tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [program, *_FLAGS, f"--user-data-dir={profile}", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            port = _port(Path(profile) / "DevToolsActivePort", process)
            with connect(_tab(port), max_size=None, compression=None, proxy=None) as socket:
                yield Browser(socket)
        finally:
            process.terminate()
            process.wait(_SECONDS)


def _port(file: Path, process: subprocess.Popen[bytes]) -> int:
    until = time.monotonic() + _SECONDS
    while not (file.exists() and file.read_text().strip()):
        assert process.poll() is None, "chromium ended"
        assert time.monotonic() < until, "chromium did not start"
        time.sleep(0.02)
    return int(file.read_text().split()[0])


def _tab(port: int) -> str:
    """The address of the browser's first tab."""
    from urllib.request import ProxyHandler, build_opener

    with build_opener(ProxyHandler({})).open(f"http://127.0.0.1:{port}/json", timeout=_SECONDS) as answer:
        tabs = json.load(answer)
    address: str = next(tab["webSocketDebuggerUrl"] for tab in tabs if tab["type"] == "page")
    return address
