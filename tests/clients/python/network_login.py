"""Logs in at the page of the local network, as a person does in a browser: types a code and clicks the button. Scripts are off.

Usage: network_login.py JSON. The file has `browser`, the address of a Chromium's debugging port, `page`, the login link, and
`codes`: what is entered, each with words of the page that follows. Prints a line of JSON for each page that is shown: its title
and its text.
"""

import html
import json
import re
import sys
import time

import httpx
from websockets.sync.client import connect

about = json.load(open(sys.argv[1]))
# A page whose script changes its title.
PROBE = "data:text/html,<title>scripts are off</title><script>document.title = 'scripts are on'</script>"


class Tab:
    """A page in a context of its own, by the DevTools protocol. It is read from its document, which needs no scripts either."""

    def __init__(self, socket):
        self.socket, self.session, self.last = socket, None, 0
        context = self.ask("Target.createBrowserContext")["browserContextId"]
        target = self.ask("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.ask("Emulation.setScriptExecutionDisabled", value=True)

    def ask(self, method, **params):
        self.last += 1
        message = {"id": self.last, "method": method, "params": params}
        self.socket.send(json.dumps({**message, "sessionId": self.session} if self.session else message))
        while True:
            answer = json.loads(self.socket.recv(timeout=30))
            if answer.get("id") == self.last:
                assert "error" not in answer, (method, answer)
                return answer["result"]

    def open(self, url):
        opened = self.ask("Page.navigate", url=url)
        assert "errorText" not in opened, (url, opened)

    def source(self):
        root = self.ask("DOM.getDocument")["root"]["nodeId"]
        return self.ask("DOM.getOuterHTML", nodeId=root)["outerHTML"]

    def until(self, words):
        """The source of the page that has these words. While one page follows another, there may be none."""
        deadline, source = time.monotonic() + 20, ""
        while time.monotonic() < deadline:
            try:
                source = self.source()
            except AssertionError:
                pass
            if words in source:
                return source
            time.sleep(0.1)
        raise AssertionError(f"{words!r} is not shown: {source}")

    def click(self, selector):
        root = self.ask("DOM.getDocument")["root"]["nodeId"]
        node = self.ask("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        corners = self.ask("DOM.getBoxModel", nodeId=node)["model"]["border"]
        place = {"x": (corners[0] + corners[4]) / 2, "y": (corners[1] + corners[5]) / 2}
        for kind in ("mousePressed", "mouseReleased"):
            self.ask("Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **place)


def show(source):
    title = re.search("<title>(.*?)</title>", source)[1]
    body = re.sub(r"\s+", " ", re.sub("<[^>]*>", " ", source[source.index("<body"):]))
    print(json.dumps({"title": html.unescape(title), "text": html.unescape(body).strip()}), flush=True)


def logs_in(tab):
    tab.open(PROBE)
    show(tab.until("scripts are off</title>"))
    tab.open(about["page"])
    show(tab.until('name="code"'))
    for code, then in about["codes"]:
        tab.click("input[name=code]")
        tab.ask("Input.insertText", text=code)
        tab.click("button")
        show(tab.until(then))


address = httpx.get(f"{about['browser']}/json/version").json()["webSocketDebuggerUrl"]
with connect(address, max_size=None) as socket:
    logs_in(Tab(socket))
