#!/usr/bin/env python3
"""Loads a report in a headless Chromium that has no network, and looks at it as a reader would.

usage: report-browser-test.py CHROMIUM REPORT.html FOLDER_FOR_SCREENSHOTS

Speaks the DevTools protocol over a pipe, so that it needs Python's standard library and nothing else.
"""

import base64
import json
import os
import pathlib
import select
import subprocess
import sys
import tempfile
import time

WIDTHS = (1280, 400)
# Every report has these; what depends on the scenario is asked for by the page's own text.
PARTS = ("h1", ".legend button", ".comparison table", ".bars svg", ".distributions svg", ".sizes svg", ".requests svg",
         ".queues svg", ".rates svg", ".sweep svg", ".claims svg", ".claims table", ".scenario pre", ".cost table")
SECONDS = 60


class Browser:
    """A Chromium and the pipe to it."""

    def __init__(self, program, profile):
        to_browser, self.to_browser = os.pipe()
        self.from_browser, from_browser = os.pipe()

        def at_three_and_four():
            # Both away from 3 and 4 first: one may be where the other has to go.
            reading, writing = os.dup(to_browser), os.dup(from_browser)
            high_reading, high_writing = os.dup2(reading, 100), os.dup2(writing, 101)
            os.dup2(high_reading, 3)
            os.dup2(high_writing, 4)

        arguments = [program, "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu",
                     "--disable-background-networking", "--disable-component-update", "--no-first-run",
                     "--disable-dev-shm-usage", "--hide-scrollbars", f"--user-data-dir={profile}", "about:blank"]
        self.process = subprocess.Popen(arguments, close_fds=False, preexec_fn=at_three_and_four,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self.buffer = b""
        self.next_id = 0
        self.events = []
        self.session = None

    def call(self, method, **parameters):
        self.next_id += 1
        message = {"id": self.next_id, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to_browser, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + SECONDS
        while True:
            answer = self.receive(deadline)
            if answer.get("id") == message["id"]:
                if "error" in answer:
                    raise SystemExit(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def receive(self, deadline):
        while b"\0" not in self.buffer:
            readable, _, _ = select.select([self.from_browser], [], [], max(0, deadline - time.monotonic()))
            chunk = os.read(self.from_browser, 1 << 20) if readable else b""
            if not chunk:
                raise SystemExit("the browser does not answer")
            self.buffer += chunk
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def evaluate(self, script):
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        if "exceptionDetails" in result:
            raise SystemExit(f"{script}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def wait_for(self, method):
        deadline = time.monotonic() + SECONDS
        while not any(event.get("method") == method for event in self.events):
            self.events.append(self.receive(deadline))

    def close(self):
        self.process.terminate()
        self.process.wait()


def main():
    program, report, folder = sys.argv[1], pathlib.Path(sys.argv[2]).resolve(), pathlib.Path(sys.argv[3])
    folder.mkdir(parents=True, exist_ok=True)
    faults = []

    def expect(condition, message):
        if not condition:
            faults.append(message)

    size = report.stat().st_size
    expect(size < 2_000_000, f"{size} bytes, allowed are 2,000,000")
    # Helpers of the browser may outlive it for a moment and still write there.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Browser(program, profile)
        try:
            target = browser.call("Target.createTarget", url="about:blank")["targetId"]
            browser.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            for domain in ("Page", "Runtime", "Log", "Network"):
                browser.call(f"{domain}.enable")
            browser.call("Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=0,
                         uploadThroughput=0)
            for width in WIDTHS:
                for scheme in ("light", "dark"):
                    browser.events.clear()
                    browser.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1,
                                 mobile=width < 600)
                    browser.call("Emulation.setEmulatedMedia",
                                 features=[{"name": "prefers-color-scheme", "value": scheme}])
                    browser.call("Page.navigate", url=report.as_uri())
                    browser.wait_for("Page.loadEventFired")
                    look(browser, width, scheme, report, expect)
                    shot = browser.call("Page.captureScreenshot", captureBeyondViewport=True)
                    path = folder / f"report-{width}-{scheme}.png"
                    path.write_bytes(base64.b64decode(shot["data"]))
        finally:
            browser.close()
    for fault in faults:
        print(f"report in a browser: {fault}", file=sys.stderr)
    if faults:
        raise SystemExit(1)
    print(f"report in a browser: good at {' and '.join(map(str, WIDTHS))} px, light and dark; screenshots in {folder}")


def look(browser, width, scheme, report, expect):
    at = f"{width} px, {scheme}"
    for part in PARTS:
        expect(browser.evaluate(f"document.querySelectorAll({part!r}).length") > 0, f"{at}: no {part}")
    wide = browser.evaluate("document.documentElement.scrollWidth")
    expect(wide <= width, f"{at}: the page is {wide} px wide")
    # Nothing sticks out except what scrolls by itself.
    out = browser.evaluate("""[...document.querySelectorAll('body *')]
        .filter(e => !e.closest('.scroll, pre, .legend, svg') && e.getBoundingClientRect().right > innerWidth + 1)
        .map(e => e.tagName + '.' + e.className).slice(0, 5).join(', ')""")
    expect(not out, f"{at}: sticks out: {out}")
    # Every chart is large enough to read, has a title and a description, and no coordinate went wrong.
    charts = browser.evaluate("""[...document.querySelectorAll('.chart svg')].filter(s => s.checkVisibility())
        .filter(s => s.clientWidth < 300 || s.clientHeight < 60 || !s.querySelector('title') || !s.querySelector('desc')
            || /NaN|inf/.test(s.outerHTML.replace(/<(title|desc|text)[^]*?<\\/\\1>/g, ''))).map(s => s.getAttribute('aria-label')).join(', ')""")
    expect(not charts, f"{at}: bad charts: {charts}")
    visible = browser.evaluate("[...document.querySelectorAll('.chart svg')].filter(s => s.checkVisibility()).length")
    expect(visible >= 10, f"{at}: only {visible} charts are visible")
    light = browser.evaluate("getComputedStyle(document.body).backgroundColor")
    expect((light == "rgb(255, 255, 255)") == (scheme == "light"), f"{at}: the background is {light}")
    # Text does not overlap the edges of its chart.
    cut = browser.evaluate("""[...document.querySelectorAll('.chart svg')].filter(s => s.checkVisibility()).flatMap(s => {
        const box = s.getBoundingClientRect();
        return [...s.querySelectorAll('text')].filter(t => { const r = t.getBoundingClientRect();
            return r.left < box.left - 3 || r.right > box.right + 3 || r.bottom > box.bottom + 3; }).map(t => t.textContent);
        }).slice(0, 5).join(', ')""")
    expect(not cut, f"{at}: text is cut off: {cut}")
    # Headings stand above what they are about, every scheme is in the legend, and each has a colour of its own.
    over = browser.evaluate("""[...document.querySelectorAll('.where')].filter(w => w.checkVisibility() && w.nextElementSibling
        && (w.nextElementSibling.firstElementChild || w.nextElementSibling).getBoundingClientRect().top < w.getBoundingClientRect().bottom - 1)
        .map(w => w.textContent).join(', ')""")
    expect(not over, f"{at}: lies over what follows: {over}")
    legend = browser.evaluate("""(() => { const all = [...document.querySelectorAll('.legend button')];
        const seen = all.filter(b => b.getBoundingClientRect().right <= innerWidth && b.getBoundingClientRect().left >= 0);
        return [all.length, seen.length, new Set(all.map(b => getComputedStyle(b).getPropertyValue('--c'))).size]; })()""")
    expect(len(set(legend)) == 1, f"{at}: schemes, those in sight, and colours: {legend}")
    # The controls do what they say.
    hidden = browser.evaluate("""(() => { const all = () => [...document.querySelectorAll('.distributions g.measured')]
        .filter(e => e.getBoundingClientRect().width > 0).length; const before = all();
        const button = document.querySelector('.legend button'); button.click(); const less = all(); button.click();
        return [before, less, all()]; })()""")
    expect(hidden[0] == hidden[2] > hidden[1] > 0, f"{at}: hiding a scheme left {hidden} curves")
    shown = browser.evaluate("""(() => { const select = document.querySelector('[data-choice]');
        const all = () => [...document.querySelectorAll('.point')].filter(e => e.checkVisibility()).length;
        const one = all(); select.value = 'all'; select.dispatchEvent(new Event('change')); const every = all();
        select.selectedIndex = 0; select.dispatchEvent(new Event('change')); return [one, every, all()]; })()""")
    expect(shown[0] == shown[2] == 1 and shown[1] > 1, f"{at}: choosing grid points shows {shown}")
    injected = browser.evaluate("document.querySelectorAll('h1 b, .describe b, marks').length")
    expect(injected == 0, f"{at}: a name became markup")
    for event in browser.events:
        method, parameters = event.get("method"), event.get("params", {})
        if method in ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled"):
            expect(False, f"{at}: console: {json.dumps(parameters)[:500]}")
        if method == "Network.requestWillBeSent":
            url = parameters["request"]["url"]
            expect(url == report.as_uri() or url.startswith("data:"), f"{at}: asks for {url}")


main()
