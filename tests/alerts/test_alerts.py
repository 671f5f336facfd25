"""Alerts against real receivers: what arrives, what is repeated, what is reported, and what is never printed."""

from __future__ import annotations

import dataclasses
import email
import email.policy
import logging
import math
import socket
import subprocess
import sys
import time
from typing import Any

import pytest

from orchestrator import alert_text, alerts
from orchestrator.compare.verdict import EXIT_CODES, Divergence, OutcomeRow, Verdict, make
from tests.alerts.receivers import webhook

LINE = "FIRST_DIVERGENCE: step=2 leaf=q_grad run_A=0.5 run_B=0.75 delta=0.25"
VERDICT = make(
    "drift",
    "The runs part at step 2 in q_grad.",
    next="foxrun check --seed 42",
    first_divergence=Divergence(step=2, row=2, leaf="q_grad", run_a="0.5", run_b="0.75", delta="0.25", line=LINE),
    outcome=[OutcomeRow(key="total_pnl_usd", a=1000.0, b=-183000.0, delta=-184000.0, percent=-18400.0)],
)
CONTEXT = alerts.AlertContext(
    workflow="regression-pair-3f0d9a61",
    sha="3f0d9a61c2b84e7f95d1a6c0e83b7742d9f10c55",
    branch="ml-alpha-cfc",
    seed=42,
    mode=1,
    link="https://artifacts.example/report.html",
)
BODY = (
    "The runs part at step 2 in q_grad.\n"
    f"{LINE}\n"
    "P&L difference: -184,000.00 USD (-1.84e+04 %)\n"
    "workflow regression-pair-3f0d9a61, branch ml-alpha-cfc, commit 3f0d9a61c2b8, seed 42, mode 1\n"
    "report: https://artifacts.example/report.html\n"
    "next: foxrun check --seed 42"
)
FIELDS = {
    "version": 1,
    "verdict": "drift",
    "exit_code": 3,
    "message": "The runs part at step 2 in q_grad.",
    "subject": "pair",
    "step": 2,
    "leaf": "q_grad",
    "first_divergence": LINE,
    "pnl_difference_usd": -184000.0,
    "pnl_difference_percent": -18400.0,
    "workflow": "regression-pair-3f0d9a61",
    "sha": "3f0d9a61c2b84e7f95d1a6c0e83b7742d9f10c55",
    "branch": "ml-alpha-cfc",
    "seed": 42,
    "mode": 1,
    "report": "https://artifacts.example/report.html",
    "next": "foxrun check --seed 42",
    "event": None,
    "kind": None,
    "repository": None,
    "author": None,
    "commit_message": None,
    "broken_since": None,
    "undelivered": [],
}


def send(*urls: str, verdict: Verdict = VERDICT, **more: Any) -> list[alerts.AlertFailure]:
    return alerts.send(verdict, urls, context=CONTEXT, **{"backoff_s": 0.01, **more})


def test_a_webhook_receives_the_facts_as_json() -> None:
    with webhook() as hook:
        assert send(f"json://127.0.0.1:{hook.port}/hooks/foxrun") == []
    [(path, headers, body)] = hook.received
    assert path == "/hooks/foxrun"
    assert headers["Content-Type"] == "application/json"
    assert headers["User-Agent"] == "foxrun"
    assert body == {
        "version": "1.0",
        "title": "foxrun: drift at step 2 in regression-pair-3f0d9a61",
        "message": BODY,
        "attachments": [],
        "type": "failure",
        "foxrun": FIELDS,
    }


def test_what_is_not_known_is_null_and_never_left_out() -> None:
    with webhook() as hook:
        url = f"json://127.0.0.1:{hook.port}"
        assert alerts.send(make("job_failed", "leg-a: exit 1"), [url], context=alerts.AlertContext()) == []
    body = hook.received[0][2]
    assert body["foxrun"].keys() == FIELDS.keys()
    assert [key for key, value in body["foxrun"].items() if value not in (None, [])] == [
        "version", "verdict", "exit_code", "message", "subject",
    ]  # fmt: skip
    assert body["title"] == "foxrun: job failed"
    assert body["message"] == "leg-a: exit 1"


def test_numbers_that_are_not_finite_stay_valid_json() -> None:
    for number, expected in ((math.nan, "NaN"), (math.inf, "Infinity"), (-math.inf, "-Infinity")):
        row = OutcomeRow(key="total_pnl_usd", a=0.0, b=number, delta=number)
        with webhook() as hook:
            assert send(f"json://127.0.0.1:{hook.port}", verdict=dataclasses.replace(VERDICT, outcome=[row])) == []
        assert hook.received[0][2]["foxrun"]["pnl_difference_usd"] == expected


@pytest.mark.parametrize(
    ("delta", "line"),
    [(-0.001, "P&L difference: -0.001 USD"), (0.0, "P&L difference: +0.00 USD"), (12.5, "P&L difference: +12.50 USD")],
)
def test_less_than_a_cent_is_not_called_nothing(delta: float, line: str) -> None:
    row = OutcomeRow(key="total_pnl_usd", a=1.0, b=1.0, delta=delta)
    assert line in alert_text.body_of(dataclasses.replace(VERDICT, outcome=[row]), CONTEXT).splitlines()


@pytest.mark.parametrize("kind", EXIT_CODES)
def test_everything_but_a_good_verdict_alerts(kind: str) -> None:
    with webhook() as hook:
        assert send(f"json://127.0.0.1:{hook.port}", verdict=make(kind, "m")) == []
    assert len(hook.received) == (0 if kind in ("identical", "within_tolerance", "succeeded") else 1)


def test_which_verdicts_are_quiet_can_be_chosen() -> None:
    with webhook() as hook:
        url = f"json://127.0.0.1:{hook.port}"
        assert send(url, verdict=make("identical", "all agree"), quiet=()) == []
        assert send(url, quiet={"drift"}) == []
    assert [body["type"] for _, _, body in hook.received] == ["success"]


def test_a_failed_attempt_is_repeated_with_growing_pauses() -> None:
    with webhook(503, 500, 200) as hook:
        assert send(f"json://127.0.0.1:{hook.port}", backoff_s=0.1) == []
    assert len(hook.received) == 3
    first, second = hook.times[1] - hook.times[0], hook.times[2] - hook.times[1]
    assert 0.1 <= first < second
    assert second >= 0.2


def test_attempts_are_bounded_and_the_answer_is_reported() -> None:
    with webhook(500) as hook:
        url = f"json://alice:swordfish@127.0.0.1:{hook.port}/hooks/s3cr3t-path"
        [failure] = send(url)
    assert len(hook.received) == 3
    assert failure.attempts == 3
    assert failure.url == f"json://***@127.0.0.1:{hook.port}/***"
    assert "error=500" in failure.reason
    assert str(failure).startswith(f"alert to json://***@127.0.0.1:{hook.port}/*** failed after 3 attempts: ")


def test_one_bad_channel_does_not_keep_the_others_from_being_told() -> None:
    with webhook(404) as bad, webhook() as good:
        urls = [f"json://127.0.0.1:{bad.port}", "nonsense", f"json://127.0.0.1:{good.port}"]
        failures = send(*urls, attempts=1)
    assert [failure.url for failure in failures] == [f"json://127.0.0.1:{bad.port}", "***"]
    assert len(good.received) == 1


def test_the_same_channel_is_told_once() -> None:
    with webhook() as hook:
        url = f"json://127.0.0.1:{hook.port}"
        assert send(url, f" {url} ", "", url) == []
    assert len(hook.received) == 1


def test_a_channel_that_never_answers_is_given_up() -> None:
    with webhook(0) as hook:
        started = time.monotonic()
        [failure] = send(f"json://127.0.0.1:{hook.port}", timeout_s=0.2, attempts=2)
        assert time.monotonic() - started < 15
    assert failure.attempts == 2
    assert len(hook.received) == 2


def test_the_deadline_holds_whatever_a_channel_does() -> None:
    with webhook(0) as hook:
        started = time.monotonic()
        [failure] = send(f"json://127.0.0.1:{hook.port}", timeout_s=20, deadline_s=0.5)
        assert time.monotonic() - started < 15
    assert failure.reason == "not done within 0.5 s"


def test_a_refused_connection_is_reported() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: every connection is refused
        [failure] = send(f"json://127.0.0.1:{taken.getsockname()[1]}/t0ken", attempts=2)
    assert failure.attempts == 2
    assert "onnection" in failure.reason
    assert "t0ken" not in str(failure)


@pytest.mark.parametrize(
    "url",
    [
        "nonsense",
        "nosuchscheme://user:swordfish@host/token1234",
        "slack://swordfish",
        "pagerduty://",
        "json://",
        "mailto://swordfish",
        "json://host:99999999/swordfish",
        "://",
        "json://[::1/swordfish",
        "\x00swordfish",
    ],
)
def test_an_invalid_url_is_reported_without_what_it_holds(url: str, capfd: pytest.CaptureFixture[str]) -> None:
    [failure] = send(url, attempts=1, timeout_s=0.5)
    assert "swordfish" not in str(failure)
    assert "token1234" not in str(failure)
    out, err = capfd.readouterr()
    assert out == ""
    assert err == ""


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("json://host", "json://host"),
        ("json://host:8080/", "json://host:8080"),
        ("jsons://alice:swordfish@host:8443/a/b", "jsons://***@host:8443/***"),
        ("json://token@host", "json://***@host"),
        ("json://a:p%40ss@[::1]:80/x?+X-Token=swordfish&method=put", "json://***@[::1]:80/***?***&method=***"),
        ("mailtos://alice:swordfish@example.com?to=bob@example.org", "mailtos://***@example.com?***"),
        ("slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/#general", "slack://***"),
        ("mailto://swordfish", "mailto://***"),
        ("pagerduty://routing@integration", "pagerduty://***"),
        ("https://hooks.slack.com/services/T1/B2/swordfish", "https://hooks.slack.com/***"),
        ("tgram://bottoken/chatid", "tgram://***"),
        ("json://a:b@c@host/x", "json://***@host/***"),
        ("json://host:port/x", "json://***"),
        ("no url at all", "***"),
        ("", "***"),
    ],
)
def test_masking(url: str, expected: str) -> None:
    assert alerts.mask(url) == expected


def test_slack_pagerduty_and_mail_urls_are_understood() -> None:
    apprise = pytest.importorskip("apprise")
    for url, service in (
        ("slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/#general", "NotifySlack"),
        ("https://hooks.slack.com/services/T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ", "NotifySlack"),
        ("pagerduty://A1BRTD4JD@TIiajkdnlazkcOXrIdevi7FQ", "NotifyPagerDuty"),
        ("mailtos://alice:swordfish@example.com?to=bob@example.org", "NotifyEmail"),
    ):
        assert type(apprise.Apprise.instantiate(url)).__name__ == service


def test_a_mail_server_receives_the_alert() -> None:
    controllers = pytest.importorskip("aiosmtpd.controller", reason="aiosmtpd is not installed")

    class Mailbox:
        def __init__(self) -> None:
            self.messages: list[tuple[str, list[str], bytes]] = []

        async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
            self.messages.append((envelope.mail_from, envelope.rcpt_tos, envelope.content))
            return "250 OK"

    mailbox = Mailbox()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    controller = controllers.Controller(mailbox, hostname="127.0.0.1", port=port)
    controller.start()
    try:
        url = f"mailto://127.0.0.1:{port}?from=foxrun@example.org&to=desk@example.org&mode=insecure"
        assert send(url, attempts=1) == []
    finally:
        controller.stop()
    [(sender, recipients, content)] = mailbox.messages
    assert sender == "foxrun@example.org"
    assert recipients == ["desk@example.org"]
    message = email.message_from_bytes(content, policy=email.policy.default)
    assert message["Subject"] == "foxrun: drift at step 2 in regression-pair-3f0d9a61"
    part = message.get_body(("plain", "html"))
    assert part is not None
    text = part.get_content()
    for line in (LINE, "next: foxrun check --seed 42", "report: https://artifacts.example/report.html"):
        assert line in text


def test_logging_of_the_caller_is_left_as_it_was() -> None:
    logger = logging.getLogger("apprise")
    before = (logger.level, logger.propagate, list(logger.handlers))
    send("nonsense")
    assert (logger.level, logger.propagate, list(logger.handlers)) == before


def test_importing_the_module_imports_no_channel() -> None:
    program = "import sys, orchestrator.alerts; print(*sorted({m.split('.')[0] for m in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "orchestrator" in loaded
    assert not loaded & {"apprise", "requests", "urllib3", "smtplib"}


def test_a_title_stays_one_short_line() -> None:
    context = alerts.AlertContext(workflow="w\nX-Injected: yes " + "x" * 300)
    title = alert_text.title_of(VERDICT, context)
    assert "\n" not in title
    assert len(title) == 120
