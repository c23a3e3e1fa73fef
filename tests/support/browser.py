"""A real Chromium at a phone's width or a desk's, driven over a pipe with its own protocol."""

import base64
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.waiting import wait_for

_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-extensions",
    "--remote-debugging-pipe",
)


class Phone:
    """One page of 390 x 844 points, unless it is to be as wide as a desk's."""

    def __init__(self, process: "subprocess.Popen[bytes]", to: int, back: int, *, is_wide: bool = False) -> None:
        self.process, self._to, self._back = process, to, back
        self._rest, self._number, self._session = b"", 0, ""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.width, height = (1280, 800) if is_wide else (390, 844)
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=self.width, height=height, deviceScaleFactor=1 if is_wide else 2, mobile=not is_wide,
        )  # fmt: skip

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + 30
        while True:
            answer = self._message(deadline)
            if answer.get("id") == self._number:
                assert "result" in answer, answer
                result: dict[str, Any] = answer["result"]
                return result

    def open(self, url: str) -> None:
        self.send("Page.navigate", url=url)
        self.until("document.readyState == 'complete' && location.protocol != 'about:'")

    def type(self, selector: str, text: str) -> None:
        """Type into a field, in place of what it holds."""
        self.eval(f"(field => {{field.focus(); field.select()}})(document.querySelector({json.dumps(selector)}))")
        self.send("Input.insertText", text=text)

    def click(self, selector: str) -> None:
        """Press the pointer's button in the middle of an element, wherever the page has to scroll for it."""
        # A page takes no input before it has been painted once.
        painted = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
        self.send("Runtime.evaluate", expression=painted, awaitPromise=True)
        found = f"document.querySelector({json.dumps(selector)})"
        self.eval(f"{found}.scrollIntoView({{block: 'center', behavior: 'instant'}})")
        box = self.eval(f"(box => [box.x + box.width / 2, box.y + box.height / 2])({found}.getBoundingClientRect())")
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)

    def eval(self, script: str) -> Any:
        return self.send("Runtime.evaluate", expression=script, returnByValue=True)["result"].get("value")

    def until(self, script: str) -> None:
        wait_for(lambda: self.eval(script), step_s=0.05)

    def screenshot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.send("Page.captureScreenshot")["data"]))

    def _message(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._back], [], [], max(0.0, deadline - time.monotonic()))
            chunk = os.read(self._back, 1 << 20) if ready else b""
            assert chunk, "the browser does not answer"
            self._rest += chunk
        raw, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(raw)
        return message


@contextmanager
def phone(folder: Path, *flags: str, is_wide: bool = False) -> Iterator[Phone]:
    """A browser with a profile of its own, ended with the body. Its two pipes are descriptors 3 and 4."""
    program = shutil.which("chromium")
    assert program is not None, "look with shutil.which first"
    child_reads, to = os.pipe()
    back, child_writes = os.pipe()
    argv = [program, *_FLAGS, *flags, f"--user-data-dir={folder}", "about:blank"]
    shell = ["/bin/bash", "-c", f'exec "$@" 3<&{child_reads} 4>&{child_writes}', "sh", *argv]
    process = subprocess.Popen(
        shell, pass_fds=(child_reads, child_writes), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )  # fmt: skip
    os.close(child_reads)
    os.close(child_writes)
    try:
        yield Phone(process, to, back, is_wide=is_wide)
    finally:
        from support.desktop import stop

        stop(process)
        os.close(to)
        os.close(back)
