"""What the report says, in which order, and that nothing from a run becomes markup."""

from __future__ import annotations

import dataclasses
import hashlib
import math
import os
import re
import subprocess
import sys
from typing import Any

import pytest

from orchestrator.compare.verdict import EXIT_CODES, Verdict
from orchestrator.report import render
from tests.report import samples
from tests.report.pages import Page

HOSTILE = (
    "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>{{ 7*7 }}{% raw %}&lt;</style>]]>\u202e`x`\x00\ud800"
)
TAGS = {
    "html",
    "head",
    "meta",
    "title",
    "style",
    "body",
    "main",
    "header",
    "strong",
    "span",
    "section",
    "div",
    "svg",
    "path",
    "circle",
    "rect",
    "desc",
    "g",
    "h1",
    "h2",
    "h3",
    "p",
    "code",
    "dl",
    "dt",
    "dd",
    "i",
    "b",
    "table",
    "caption",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "small",
    "details",
    "summary",
    "figure",
    "figcaption",
    "text",
    "ul",
    "li",
    "footer",
    "wbr",
    "br",
}


def hostile(value: Any) -> Any:
    """The same value with every text in it replaced; keys of objects as well."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        changed = {f.name: hostile(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return dataclasses.replace(value, **changed)
    if isinstance(value, str):
        return HOSTILE
    if isinstance(value, list):
        return [hostile(item) for item in value]
    if isinstance(value, dict):
        return {f"{HOSTILE}{i}": hostile(item) for i, item in enumerate(value.values())}
    return value


ALL = [*samples.KINDS_OF_VERDICT.values(), samples.extreme]


@pytest.mark.parametrize("make", ALL, ids=lambda make: make.__name__)
def test_markup_is_well_formed_and_carries_nothing_active_or_remote(make: Any) -> None:
    html = render(make())
    page = Page(html)
    assert page.problems == []
    assert {tag for tag, _ in page.elements} <= TAGS
    names = {name for _, attributes in page.elements for name in attributes}
    assert not names & {"src", "href", "srcset", "style", "action", "formaction", "background", "poster"}
    assert not [name for name in names if name.startswith("on")]
    assert not re.search(r"https?:|//[a-z]|data:|@import|url\(|javascript:", html)


@pytest.mark.parametrize("make", ALL, ids=lambda make: make.__name__)
def test_hostile_text_in_every_field_stays_text(make: Any) -> None:
    html = render(hostile(make()))
    page = Page(html)
    assert page.problems == []
    assert {tag for tag, _ in page.elements} <= TAGS
    names = {name for _, attributes in page.elements for name in attributes}
    assert not [name for name in names if name.startswith("on") or name == "src"]
    assert html.count("</style>") == 1
    assert not re.search("[\u202e\x00\ud800]", html)
    html.encode()
    assert "<script>alert(1)</script>" in page.text
    assert "{{ 7*7 }}" in page.text


def test_every_verdict_has_its_own_word_and_shape() -> None:
    seen = {}
    for kind, make in samples.KINDS_OF_VERDICT.items():
        html = render(make())
        icon = re.search(r'<svg class="icon".*?</svg>', html, re.S)
        assert icon is not None
        page = Page(html)
        assert page.headings[0][0] == 1
        assert f"exit {EXIT_CODES[kind]}" in page.text
        seen[kind] = (page.headings[0][1], icon.group(0))
    assert set(seen) == set(EXIT_CODES)
    assert len({word for word, _ in seen.values()}) == len(seen)
    assert len({shape for _, shape in seen.values()}) == len(seen)


def test_sections_come_in_the_order_in_which_they_are_needed() -> None:
    verdict = dataclasses.replace(samples.drift(), parts=samples.job_failed().parts)
    page = Page(render(verdict))
    assert page.headings == [
        (1, "Drift"),
        (2, "First divergence"),
        (2, "Leaves that part at step 2"),
        (2, "Divergence growth"),
        (2, "What agreed"),
        (2, "Outcome"),
        (2, "Differences in files"),
        (2, "Parts of the workflow that failed"),
        (2, "The two runs"),
        (3, "Manifest fields that differ"),
        (3, "Manifests side by side"),
        (2, "Notes"),
    ]
    message, after = page.text.index(verdict.message), page.text.index("What to do next")
    assert message < after < page.text.index("Effect on P&L") < page.text.index("First divergence")


def test_empty_sections_are_left_out() -> None:
    page = Page(render(samples.infrastructure()))
    assert page.headings == [(1, "Infrastructure failed"), (2, "Parts of the workflow that failed")]


def test_a_verdict_of_nothing_but_words_is_shown() -> None:
    page = Page(render(Verdict(verdict="incomplete", exit_code=7, message="Nothing is there.")))
    assert page.headings == [(1, "Incomplete")]
    assert "Nothing is there." in page.text


def test_the_stable_line_is_printed_as_it_is() -> None:
    verdict = samples.drift()
    assert verdict.first_divergence is not None
    assert verdict.first_divergence.line in Page(render(verdict)).text
    assert verdict.first_divergence.line in render(verdict)  # one piece, so that it is found by grep as well


def test_the_next_command_can_be_copied_alone() -> None:
    html = render(samples.drift())
    assert '<code class="copy block">foxrun check --seed 42 --mode 1 --steps 50 -p environments=128</code>' in html
    assert "to see whether the twin run parts too" in Page(html).text


@pytest.mark.parametrize(
    ("a", "b", "delta", "percent", "expected"),
    [
        (100.0, 75.5, -24.5, -24.5, "\u2212$24.50 \u221224.50 % of A A $100.00 B $75.50"),
        (-10.0, 567.891, 577.891, 5778.91, "+$577.89 +5,778.91 % of A A \u2212$10.00 B $567.89"),
        (0.0, 0.001, 0.001, None, "+$0.001 A $0.00 B $0.001"),
        (5.0, 5.0, 0.0, 0.0, "$0.00 no difference both $5.00"),
        ("NaN", 5.0, None, None, "no number A NaN B $5.00"),
        (math.inf, 5.0, -math.inf, None, "-Infinity A Infinity B $5.00"),
        (None, 5.0, None, None, "no number A \u2013 B $5.00"),
    ],
)  # fmt: skip
def test_the_effect_on_profit_and_loss_is_in_dollars_and_per_cent(
    a: Any, b: Any, delta: Any, percent: Any, expected: str
) -> None:
    row = samples.OutcomeRow(key="total_pnl_usd", a=a, b=b, delta=delta, percent=percent)
    html = render(dataclasses.replace(samples.drift(), outcome=[row])).replace("<br>", " ").replace("</dd>", " </dd>")
    text = Page(html).text
    found = re.search(r"Effect on P&L(.*?)Part first at", text)
    assert found is not None
    assert found.group(1).strip() == expected


def test_all_leaves_are_listed_in_the_order_given() -> None:
    verdict = samples.drift(300)
    html = render(verdict)
    names = re.findall(r'<td class="n">(\d+)</td><th scope="row"><span class="mono">(.*?)</span>', html)
    assert [int(number) for number, _ in names] == list(range(1, 301))
    assert [name.replace("<wbr>", "") for _, name in names] == [leaf.name for leaf in verdict.parted]


def test_what_differs_between_two_values_is_marked_from_its_first_character() -> None:
    html = render(samples.drift(1))
    assert "<i>0.41873</i><b>168945312</b>" in html
    assert "<i>0.41873</i><b>238945312</b>" in html


def test_a_leaf_whose_checksums_agree_shows_its_fingerprints() -> None:
    html = render(samples.gate_failed())
    row = re.search(r'<td class="n">1</td>.*?</tr>', html, re.S)
    assert row is not None
    assert "b7a4712c74562914" in row.group(0)
    assert "1937da9f8ad16e78" in row.group(0)
    assert ">bits<" in row.group(0)


def test_a_planted_flip_that_was_missed_is_said_loudly() -> None:
    assert "was NOT found: this comparison cannot be trusted" in Page(render(samples.extreme())).text
    assert "was found, so this comparison can see one bit" in Page(render(samples.identical())).text


def test_manifests_mark_what_differs_and_keep_equal_fields_together() -> None:
    html = render(samples.incomparable())
    marked = re.findall(
        r'<tr class="differs"><th.*?</span>([\w.<>]+)</th><td class="mono">(.*?)</td><td class="mono">(.*?)</td>', html
    )
    command = "python, -m, trainer, --out, run"
    assert [(path.replace("<wbr>", ""), a, b) for path, a, b in marked] == [
        ("run_id", "9c1f02ab77de4410", "0b7e55d1c09f4d32"),
        ("seed", "42", "43"),
        ("environment.gpu_name", "NVIDIA H200", "NVIDIA A100-SXM4-80GB"),
        ("environment.gpu_uuid", "GPU-9c1f02ab77de4410-4a1e-b7c2-5d0f6a", "GPU-0b7e55d1c09f4d32-4a1e-b7c2-5d0f6a"),
        ("command", f"{command}, --seed, 42, --mode, 1", f"{command}, --seed, 43, --mode, 1"),
    ]
    assert html.count('<span class="badge">decides</span>') == 2


def test_the_same_verdict_gives_the_same_bytes_in_any_process() -> None:
    expected = [hashlib.sha256(render(make()).encode()).hexdigest() for make in ALL]
    program = (
        "import hashlib\nfrom orchestrator.report import render\nfrom tests.report.test_page import ALL\n"
        "print(*[hashlib.sha256(render(make()).encode()).hexdigest() for make in ALL], sep='\\n')"
    )
    for seed in ("0", "4711"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "TZ": "Pacific/Kiritimati", "LC_ALL": "C"}
        done = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
        )
        assert done.stdout.split() == expected


def test_a_report_of_711_leaves_and_25000_steps_stays_below_500_kb() -> None:
    assert len(render(samples.drift(711, 25_000)).encode()) < 500_000


def test_tables_have_headers_with_a_scope() -> None:
    for make in ALL:
        page = Page(render(make()))
        assert all("scope" in attributes for tag, attributes in page.elements if tag == "th")
        tables = sum(tag == "table" for tag, _ in page.elements)
        assert tables == sum(tag == "thead" for tag, _ in page.elements)


def _luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def _contrast(a: str, b: str) -> float:
    light, dark = sorted((_luminance(a), _luminance(b)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_text_has_a_contrast_of_at_least_4_5_in_both_schemes() -> None:
    css = re.search(r"<style>(.*?)</style>", render(samples.drift()), re.S)
    assert css is not None
    light, dark = css.group(1).split("@media screen and (prefers-color-scheme: dark)")
    for scheme in (light, dark.split("* { box-sizing")[0]):
        base = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", re.search(r":root \{(.*?)\}", scheme, re.S).group(1)))  # type: ignore[union-attr]
        tones = re.findall(r"\.v-\w+ \{ --tone: (#[0-9a-f]{6}); --tone-back: (#[0-9a-f]{6}); \}", scheme)
        assert len(tones) == 7
        pairs = [(base[text], base[back]) for text in ("text", "muted", "a", "b") for back in ("page", "card")]
        pairs += [(base["text"], base["code"]), (base["warn"], base["card"]), (base["warn"], base["warn-back"])]
        pairs += [(base["text"], base["warn-back"])]
        for tone, back in tones:
            pairs += [(tone, back), (tone, base["card"])]
            pairs += [(base[text], back) for text in ("text", "muted", "a", "b")]
        low = {pair: round(_contrast(*pair), 2) for pair in pairs if _contrast(*pair) < 4.5}
        assert low == {}


def test_what_agreed_is_counted() -> None:
    text = Page(render(samples.drift()).replace("</dt>", " </dt>").replace("</dd>", " </dd>")).text
    assert (
        "What agreed rows that agree throughout 2 of 2,501 leaves in each row 711 fingerprints that agree 173,331 "
        "metric values that agree 25,010"
    ) in text
