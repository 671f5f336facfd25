"""Rules: who hears of what, and when."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from orchestrator.alert_rules import BAD, GOOD, Rule, channels_of, parse_quiet, parse_rules, rule_texts
from orchestrator.compare.verdict import EXIT_CODES
from orchestrator.errors import UsageError
from orchestrator.settings import load_settings


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def test_the_words_are_those_of_the_verdicts() -> None:
    assert {word for word, code in EXIT_CODES.items() if code == 0} == GOOD
    assert set(EXIT_CODES) == GOOD | BAD


BERLIN = "22:00-07:00 Europe/Berlin"


@pytest.mark.parametrize(
    ("quiet", "moment", "end"),
    [
        (BERLIN, "2026-01-10T21:59:59+01:00", None),
        (BERLIN, "2026-01-10T22:00:00+01:00", "2026-01-11T07:00:00+01:00"),
        (BERLIN, "2026-01-11T06:59:59+01:00", "2026-01-11T07:00:00+01:00"),
        (BERLIN, "2026-01-11T07:00:00+01:00", None),
        (BERLIN, "2026-03-28T23:00:00+01:00", "2026-03-29T07:00:00+02:00"),  # the clocks go forward in that night
        (BERLIN, "2026-10-24T23:00:00+02:00", "2026-10-25T07:00:00+01:00"),
        ("09:00-17:00 UTC", "2026-01-10T12:00:00+00:00", "2026-01-10T17:00:00+00:00"),
        ("sat,sun UTC", "2026-01-10T12:00:00+00:00", "2026-01-11T00:00:00+00:00"),  # a Saturday
        ("sat,sun UTC", "2026-01-12T00:00:00+00:00", None),
        ("mon-fri 20:00-08:00 America/New_York", "2026-01-10T07:59:00-05:00", "2026-01-10T08:00:00-05:00"),
        ("mon-fri 20:00-08:00 America/New_York", "2026-01-10T21:00:00-05:00", None),
        ("fri-mon 00:00-24:00 UTC", "2026-01-12T23:00:00+00:00", "2026-01-13T00:00:00+00:00"),
    ],
)
def test_quiet_hours(quiet: str, moment: str, end: str | None) -> None:
    assert parse_quiet(quiet).until(at(moment)) == (at(end) if end else None)


def test_quiet_hours_that_follow_each_other_are_waited_for() -> None:
    rule = Rule(quiet=(parse_quiet("22:00-24:00 UTC"), parse_quiet("sat,sun UTC"), parse_quiet("mon 00:00-07:30 UTC")))
    assert rule.due(at("2026-01-09T23:00:00+00:00")) == at("2026-01-12T07:30:00+00:00")
    assert rule.due(at("2026-01-12T07:30:00+00:00")) == at("2026-01-12T07:30:00+00:00")


def test_patterns_of_branches_and_kinds() -> None:
    rule = Rule(branches=("main", "ml-alpha-*"), kinds=("ci-gate",))
    assert rule.covers("ml-alpha-a/b", "ci-gate") and rule.covers("main", "ci-gate")
    assert not rule.covers("main", "nightly") and not rule.covers("Main", "ci-gate") and not rule.covers("x", "ci-gate")


def test_without_rules_everything_bad_goes_everywhere() -> None:
    assert parse_rules(()) == (Rule(verdicts=BAD, branches=("*",), kinds=("*",), channels=(), quiet=()),)


FILE = """\
alerts:
  desk: slack://tokenA/tokenB/tokenC/#general
  oncall: pagerduty://A1BRTD4JD@TIiajkdnlazkcOXrIdevi7FQ
alert_rules:
  - verdicts: [drift, gate_failed]
    branches: [main, "ml-alpha-*"]
    channels: [desk, oncall]
    quiet: 22:00-07:00 Europe/Berlin
  - {verdicts: bad, kinds: nightly, channels: desk, repeat: true, mended: false}
"""


def test_rules_are_settings(tmp_path: Path) -> None:
    (tmp_path / "foxrun.yaml").write_text(FILE)
    settings = load_settings(tmp_path, {})
    assert list(channels_of(settings.alerts)) == ["desk", "oncall"]
    first, second = parse_rules(settings.alert_rules)
    assert first == Rule(
        verdicts=frozenset({"drift", "gate_failed"}), branches=("main", "ml-alpha-*"), channels=("desk", "oncall"),
        quiet=(parse_quiet(BERLIN),),
    )  # fmt: skip
    assert second == Rule(verdicts=BAD, kinds=("nightly",), channels=("desk",), repeat=True, mended=False)
    again = load_settings(Path("/"), {"FOXRUN_ALERT_RULES": "[" + ", ".join(settings.alert_rules) + "]"})
    assert again.alert_rules == settings.alert_rules
    assert parse_rules(rule_texts(FILE.partition("alert_rules:\n")[2])) == (first, second)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[1]", "rule 1: it is an object of verdicts, branches"),
        ("[{}, {verdict: drift}]", "rule 2: 'verdict' is none of"),
        ("[{verdicts: [drifted]}]", "rule 1: 'drifted' is no verdict"),
        ("[{channels: []}]", "rule 1: channels is a text or a list of texts"),
        ("[{quiet: nights}]", "rule 1: quiet hours are like"),
        ("[{quiet: 22:00-07:00 Mars/Olympus}]", "no such time zone"),
        ("[{quiet: 25:00-07:00 UTC}]", "no such time"),
        ("[{quiet: 07:00-07:00 UTC}]", "begins when it ends"),
        ("[{quiet: so-mo UTC}]", "quiet hours are like"),
        ("[{quiet: 'sun,mun UTC'}]", "'mun' is no day"),
        ("[{repeat: often}]", "repeat is true or false"),
        ("{verdicts: drift}", "rules are a list"),
        ("[", "no YAML"),
    ],
)
def test_what_is_no_rule_is_named_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UsageError) as raised:
        load_settings(tmp_path, {"FOXRUN_ALERT_RULES": text})
    assert said in str(raised.value) and "FOXRUN_ALERT_RULES" in str(raised.value)


def test_channels_have_names() -> None:
    words = ["json://a/b=c", "desk=json://b", "json://c", "slack://t", "json://c", "nonsense"]
    assert channels_of(words) == {
        "json": "json://a/b=c",
        "desk": "json://b",
        "json-2": "json://c",
        "slack": "slack://t",
        "channel": "nonsense",
    }
