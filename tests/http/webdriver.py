# SPDX-License-Identifier: MIT
"""A browser without a window, driven through chromedriver (W3C WebDriver)."""
import base64
import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request

from run_http import Failure

LONG_S = 120


def is_there():
    return shutil.which("chromedriver") and shutil.which("chromium")


class Browser:
    """A session; its pages have |width| x |height| pixels."""

    def __init__(self, width=1200, height=900):
        with socket.socket() as place:
            place.bind(("127.0.0.1", 0))
            port = place.getsockname()[1]
        self.base = f"http://127.0.0.1:{port}"
        self.driver = subprocess.Popen(["chromedriver", f"--port={port}"],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + LONG_S
        while True:
            try:
                self.ask("GET", "/status")
                break
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.1)
        chrome = {"args": ["--headless=new", "--no-sandbox", "--disable-gpu",
                           "--disable-dev-shm-usage", "--use-fake-ui-for-media-stream",
                           "--use-fake-device-for-media-stream", f"--window-size={width},{height}"]}
        wanted = {"browserName": "chrome", "goog:loggingPrefs": {"browser": "ALL"},
                  "goog:chromeOptions": chrome}
        session = self.ask("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self.base += "/session/" + session["sessionId"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.ask("DELETE", "")
        finally:
            self.driver.terminate()
            self.driver.wait()

    def ask(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, method=method)
        try:
            with urllib.request.urlopen(request, timeout=LONG_S) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            said = json.load(error)["value"]["message"].splitlines()[0]
            raise Failure(f"{method} {path} {str(body)[:200]}: {said}") from error

    def go(self, url):
        self.ask("POST", "/url", {"url": url})

    def run(self, script, *args):
        return self.ask("POST", "/execute/sync", {"script": script, "args": list(args)})

    def wait(self, expression):
        """The value of |expression| as soon as it is true."""
        end = time.monotonic() + LONG_S
        while time.monotonic() < end:
            value = self.run("return " + expression)
            if value:
                return value
            time.sleep(0.1)
        text = self.run("return document.body.innerText")[:2000]
        raise Failure(f"waited in vain for {expression}; the page says: {text}")

    def element(self, selector):
        found = self.ask("POST", "/element", {"using": "css selector", "value": selector})
        return next(iter(found.values()))

    def type(self, selector, text):
        """Also the path of a file, into a field for files."""
        self.ask("POST", f"/element/{self.element(selector)}/value", {"text": text})

    def click(self, selector):
        self.ask("POST", f"/element/{self.element(selector)}/click", {})

    def press(self, key):
        """A key for the element that has the focus."""
        keys = [{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]
        self.ask("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": keys}]})

    def devtools(self, command, **parameters):
        """A command of Chromium's own protocol, and its answer."""
        return self.ask("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def complaints(self):
        """What the page and the browser have complained of."""
        return [row["message"] for row in self.ask("POST", "/se/log", {"type": "browser"})]

    def picture(self, path):
        with open(path, "wb") as out:
            out.write(base64.b64decode(self.ask("GET", "/screenshot")))
