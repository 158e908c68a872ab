"""A headless Chromium that a test drives by its debugging protocol."""

import asyncio
import contextlib
import itertools
import json
import shutil
import subprocess
import tempfile
from pathlib import Path

import aiohttp
import pytest

from tests.rest.rest_world import WAIT_S, until

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is missing (apt-get install chromium)")
_OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-port=0",
    "--remote-allow-origins=*",
)


class Page:
    """A page of the browser."""

    def __init__(self, socket) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)

    async def call(self, method, **parameters):
        """Return the result of a command."""
        number = next(self._numbers)
        await self._socket.send_json({"id": number, "method": method, "params": parameters})
        async for message in self._socket:
            answer = json.loads(message.data)
            if answer.get("id") == number:
                assert "error" not in answer, answer
                return answer["result"]
        raise AssertionError("the browser is gone")

    async def value(self, expression):
        """Return the value of an expression in the page."""
        found = await self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    async def until(self, expression):
        """Wait until an expression in the page is true."""
        await until(lambda: self.value(expression))

    async def go(self, address):
        """Load an address."""
        await self.call("Page.enable")
        await self.call("Page.navigate", url=address)
        await self.until("document.readyState === 'complete'")

    async def press(self, key):
        """Press and release a key; a text of one character is typed."""
        text = {"text": key} if len(key) == 1 else {}
        await self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        await self.call("Input.dispatchKeyEvent", type="keyUp", key=key)


@contextlib.asynccontextmanager
async def browser_page():
    """Start a browser and yield an empty page of it."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        words = [CHROMIUM, *_OPTIONS, f"--user-data-dir={folder}", "about:blank"]
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        try:
            told = Path(folder) / "DevToolsActivePort"

            async def port():
                return told.exists() and told.read_text().count("\n") and told.read_text().split("\n")[0]

            at = f"http://127.0.0.1:{await until(port)}"
            async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(WAIT_S)) as session:
                async with session.get(f"{at}/json/list") as answer:
                    address = next(each for each in await answer.json() if each["type"] == "page")
                async with session.ws_connect(address["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                    yield Page(socket)
        finally:
            process.terminate()
            await asyncio.to_thread(process.wait, WAIT_S)
