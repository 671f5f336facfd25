"""The page of a localisation: what stands in it, and in a real browser that nothing overflows or complains."""

from __future__ import annotations

import dataclasses
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.report.localization import render
from tests.report import chromium, localizations

PAGES = {"found": localizations.found, "extreme": localizations.extreme, "clean": localizations.clean}
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
OVERFLOWING = """[...document.querySelectorAll('main *')].filter(e => !e.closest('svg')
  && e.getBoundingClientRect().right > document.documentElement.clientWidth + 1).map(e => e.tagName).slice(0, 5)"""
OUTSIDE_BOXES = """[...document.querySelectorAll('.dataflow .stage')].filter(g =>
  [...g.querySelectorAll('text')].some(t => t.getBBox().x + t.getBBox().width
    > g.querySelector('rect').getBBox().x + g.querySelector('rect').getBBox().width)).length"""


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        name = self.path.strip("/")
        body = (
            f'<!doctype html><title>f</title><iframe sandbox src="/{name[7:]}" width="475" height="500"></iframe>'
            if name.startswith("framed-")
            else render(PAGES[name]())
            if name in PAGES
            else ""
        ).encode()
        # A browser asks for an icon by itself, and complains when there is none.
        self.send_response(200 if body else 204 if name == "favicon.ico" else 404)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        if not name.startswith("framed-"):
            self.send_header("Content-Security-Policy", POLICY)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words: object) -> None:
        pass


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[chromium.Browser, str]]:
    if chromium.executable() is None:
        pytest.skip("no Chromium or Chrome is installed (Debian: apt-get install chromium)")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    browser = chromium.Browser(tmp_path_factory.mktemp("profile"))
    yield browser, f"http://127.0.0.1:{server.server_address[1]}"
    browser.close()
    server.shutdown()
    server.server_close()


def test_it_says_where_why_what_to_do_and_what_was_not_looked_at() -> None:
    page = render(localizations.found())
    for text in (
        "step 2", "replay_sample_indices", "torch.Generator.seed", "trainer/faults.py:94", "generator.seed()",
        "replay-sampling (certain)", "for: with seed-generators the twins agree", "against: nothing",
        "verified in 3 runs (by luck 3.7%)", "no effect: the twins part at the same place",
        "differed in 3 of 20 runs", "the streams of workers", "generators (origin)",
        "From 1e-07 at step 2 to a difference of +$2.50 in profit and loss.", "Steps 0 to 1 agree",
        "intermediates first: attn_q at [3, 1]: 1.0 and 1.0000001, 1 ulp",
    ):  # fmt: skip
        assert text in page.replace("<wbr>", ""), text
    assert render(localizations.found()) == page


def test_a_run_without_a_profit_claims_none() -> None:
    result = localizations.found()
    assert result.verdict is not None
    page = render(dataclasses.replace(result, verdict=dataclasses.replace(result.verdict, outcome=[])))
    assert "From 1e-07 at step 2." in page
    assert "profit" not in page


def test_a_clean_result_says_what_it_is_worth() -> None:
    page = render(localizations.clean())
    assert "No difference seen" in page
    assert "a fault that parts 45% of such pairs or more would have been seen with 95 %" in page


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [320, 1280])
@pytest.mark.parametrize("name", [*PAGES, "framed-found"])
def test_nothing_overflows_or_complains(
    browser: tuple[chromium.Browser, str], name: str, width: int, dark: bool, tmp_path: Path
) -> None:
    shown, url = browser
    shown.show(f"{url}/{name}", width=max(width, 500) if "framed" in name else width, dark=dark, mobile=width < 500)
    assert [text for text in shown.complaints() if "favicon" not in text] == []
    if name.startswith("framed-"):
        return
    assert shown.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    assert shown.evaluate(OVERFLOWING) == []
    assert shown.evaluate(OUTSIDE_BOXES) == 0
    back, text = shown.evaluate(
        "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
    )
    assert (sum(map(int, back[4:-1].split(","))) < sum(map(int, text[4:-1].split(",")))) == dark
