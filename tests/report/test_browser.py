"""The report in a real browser: nothing overflows, complains or is fetched, on a phone, in a frame, light and dark."""

from __future__ import annotations

import dataclasses
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from orchestrator.report import render
from tests.report import chromium, samples

pytestmark = pytest.mark.skipif(
    chromium.executable() is None, reason="no Chromium or Chrome is installed (Debian: apt-get install chromium)"
)

PAGES = {**samples.KINDS_OF_VERDICT, "extreme": samples.extreme, "many": lambda: samples.drift(300)}
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
FRAME = '<!doctype html><title>frame</title><iframe sandbox src="/{name}" width="475" height="500"></iframe>'


class Server(http.server.ThreadingHTTPServer):
    """Serves each page as an artifact server would, and remembers what was asked for."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[str] = []
        self.pages = {name: render(make()).encode() for name, make in PAGES.items()}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        path = urlsplit(self.path).path.strip("/")
        self.server.asked.append(path)
        framed = path.startswith("framed-")
        body = FRAME.format(name=path.removeprefix("framed-")).encode() if framed else self.server.pages.get(path)
        self.send_response(200 if body else 404)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        if not framed:
            self.send_header("Content-Security-Policy", POLICY)
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    server = Server()
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[chromium.Browser]:
    browser = chromium.Browser(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


# What sticks out to the right of the window, clipped or not.
OVERFLOWING = """[...document.querySelectorAll('main *:not(.hidden)')].filter(e => !e.closest('.hidden')
  && e.getBoundingClientRect().right > document.documentElement.clientWidth + 0.5)
  .map(e => e.outerHTML.slice(0, 120))"""
CUT = """[...document.querySelectorAll('td, th, dd, code, p, h1, h2')].filter(e => !e.closest('.hidden')
  && e.clientWidth > 0 && e.scrollWidth > e.clientWidth + 1).map(e => e.outerHTML.slice(0, 120))"""


@pytest.mark.parametrize("name", PAGES)
def test_nothing_overflows_complains_or_is_fetched(name: str, server: Server, browser: chromium.Browser) -> None:
    server.asked.clear()
    for width in (320, 375, 475, 1200):
        browser.show(f"{server.url}/{name}", width=width, dark=width == 475, mobile=width < 400)
        assert browser.complaints() == []
        assert browser.requests() == [f"{server.url}/{name}"]
        browser.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        assert browser.call("Page.getLayoutMetrics")["cssContentSize"]["width"] == width
        assert browser.evaluate(OVERFLOWING) == []
        assert browser.evaluate(CUT) == []
    assert set(server.asked) <= {name, "favicon.ico"}


def test_it_is_styled_under_the_strictest_policy(server: Server, browser: chromium.Browser) -> None:
    colours = {}
    for dark in (False, True):
        browser.show(f"{server.url}/drift", width=475, dark=dark)
        colours[dark] = browser.evaluate(
            "['main', '.hero h1', '.chart .line'].map(s => getComputedStyle(document.querySelector(s)))"
            ".map((s, i) => i == 2 ? s.stroke : s.color).concat(getComputedStyle(document.body).backgroundColor)"
        )
    assert colours == {
        False: ["rgb(21, 25, 30)", "rgb(179, 38, 30)", "rgb(10, 88, 168)", "rgb(245, 246, 248)"],
        True: ["rgb(232, 236, 241)", "rgb(255, 143, 135)", "rgb(127, 184, 245)", "rgb(13, 16, 20)"],
    }


def test_verdict_command_and_effect_are_seen_without_scrolling_in_a_small_frame(
    server: Server, browser: chromium.Browser
) -> None:
    browser.show(f"{server.url}/drift", width=475, height=500)
    for selector in ("h1", ".message", ".next code", ".facts .big"):
        bottom = browser.evaluate(f"document.querySelector('{selector}').getBoundingClientRect().bottom")
        assert 0 < bottom < 500, selector


def test_it_shows_in_a_sandboxed_frame(server: Server, browser: chromium.Browser) -> None:
    browser.show(f"{server.url}/framed-drift", width=520, height=560)
    document = browser.call("DOMSnapshot.captureSnapshot", computedStyles=[])
    assert browser.complaints() == []
    frame = next(d for d in document["documents"] if document["strings"][d["documentURL"]].endswith("/drift"))
    assert frame["contentWidth"] <= 475
    shown = {document["strings"][i] for i in frame["layout"]["text"] if i >= 0}
    assert "Drift" in shown


def test_all_of_it_is_printed(server: Server, browser: chromium.Browser) -> None:
    browser.show(f"{server.url}/many", width=800)
    rows = "[...document.querySelectorAll('.leaves tr')].filter(e => e.checkVisibility()).length"
    on_screen = browser.evaluate(rows)
    browser.call("Emulation.setEmulatedMedia", media="print")
    printed = browser.evaluate(rows)
    browser.call("Emulation.setEmulatedMedia", media="")
    assert on_screen < 30
    assert printed > 300


def test_what_a_reader_hears_names_every_section_and_picture(server: Server, browser: chromium.Browser) -> None:
    browser.show(f"{server.url}/drift", width=475)
    nodes = browser.call("Accessibility.getFullAXTree")["nodes"]
    named = [(n["role"]["value"], n.get("name", {}).get("value", "")) for n in nodes if not n.get("ignored")]
    assert ("heading", "Drift") in named
    assert ("image", "Two paths that part, in a diamond") in named
    pictures = [name for role, name in named if role == "image"]
    assert len(pictures) == 3
    assert all(pictures)
    regions = [name for role, name in named if role == "region"]
    assert regions == [
        "Drift", "First divergence", "Leaves that part at step 2", "Divergence growth", "What agreed", "Outcome",
        "Differences in files", "The two runs", "Notes",
    ]  # fmt: skip
    assert sum(role == "rowheader" for role, _ in named) > 30


def test_copying_the_command_takes_the_command_alone(server: Server, browser: chromium.Browser) -> None:
    browser.show(f"{server.url}/drift", width=475)
    box = browser.evaluate("(r => [r.x + 20, r.y + 12])(document.querySelector('.next code').getBoundingClientRect())")
    for kind in ("mousePressed", "mouseReleased"):
        browser.call("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)
    expected = "foxrun check --seed 42 --mode 1 --steps 50 -p environments=128"
    assert browser.evaluate("getSelection().toString()") == expected


def test_hostile_names_run_nothing(server: Server, browser: chromium.Browser) -> None:
    name = "<img src=/stolen onerror=alert(1)><script>document.title='owned'</script>"
    verdict = dataclasses.replace(samples.drift(3), message=name, next=f"`{name}`", notes=[name])
    server.pages["hostile"] = render(verdict).encode()
    browser.show(f"{server.url}/hostile", width=475)
    assert browser.complaints() == []
    assert browser.requests() == [f"{server.url}/hostile"]
    assert browser.evaluate("document.title") == "Drift · Regression pair · foxrun"
    assert browser.evaluate("document.querySelector('.message').textContent") == name


def test_an_overflow_would_be_seen(server: Server, browser: chromium.Browser, tmp_path: Path) -> None:
    wide = render(samples.drift(3)).replace("overflow-wrap: anywhere;", "white-space: nowrap;", 1)
    server.pages["wide"] = wide.encode()
    browser.show(f"{server.url}/wide", width=375, mobile=True)
    assert browser.evaluate(OVERFLOWING) != []
