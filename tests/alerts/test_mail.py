"""E-mail at a real SMTP server: what arrives, what is tried again, and what hostile text cannot do."""

from __future__ import annotations

import email
import email.message
import email.policy
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from orchestrator.alert_rules import Rule
from orchestrator.alert_state import FileState
from orchestrator.alert_text import AlertContext
from orchestrator.alerting import Policy, tell_channels
from orchestrator.compare.verdict import make
from tests.alerts.test_alerts import LINE, VERDICT

controllers = pytest.importorskip("aiosmtpd.controller", reason="aiosmtpd is not installed")


class Mailbox:
    """What arrived; ``refusals`` are answers to the first deliveries."""

    def __init__(self, *refusals: str) -> None:
        self.refusals = list(refusals)
        self.letters: list[tuple[list[str], email.message.EmailMessage]] = []

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        if self.refusals:
            return self.refusals.pop(0)
        letter = email.message_from_bytes(envelope.content, policy=email.policy.default)
        assert isinstance(letter, email.message.EmailMessage)
        self.letters.append((envelope.rcpt_tos, letter))
        return "250 OK"


@contextmanager
def server(mailbox: Mailbox) -> Iterator[str]:
    """The URL of a running server."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    controller = controllers.Controller(mailbox, hostname="127.0.0.1", port=port)
    controller.start()
    try:
        yield f"mailto://127.0.0.1:{port}?from=foxrun@example.org&to=desk@example.org&mode=insecure"
    finally:
        controller.stop()


def end(home: Path, url: str, verdict: Any, text: str, number: int) -> list[str]:
    context = AlertContext(
        workflow=text, kind="ci-gate", branch=text, sha=f"{number:040x}", author=text, message=text,
        started=f"2026-01-14T12:00:{number:02}Z",
    )  # fmt: skip
    policy = Policy(channels={"mail": url}, rules=(Rule(),), state=FileState(home))
    return list(tell_channels(verdict, context, policy, backoff_s=0.01, deadline_s=30.0))


def text_of(letter: email.message.EmailMessage) -> str:
    part = letter.get_body(("plain", "html"))
    assert part is not None
    return str(part.get_content())


def test_a_branch_that_breaks_and_is_mended_is_two_letters(tmp_path: Path) -> None:
    mailbox = Mailbox("451 try again", "421 too busy")
    with server(mailbox) as url:
        for number in range(3):
            end(tmp_path, url, VERDICT, "ml-alpha-1", number)
        assert end(tmp_path, url, make("identical", "all agree"), "ml-alpha-1", 3) == ["alert sent to mail"]
    assert [letter["Subject"] for _, letter in mailbox.letters] == [
        "foxrun: drift at step 2 in ml-alpha-1",
        "foxrun: mended: ci-gate on ml-alpha-1 is identical",
    ]
    broke = text_of(mailbox.letters[0][1])
    for line in (LINE, "-184,000.00 USD", "foxrun check --seed 42"):
        assert line in broke


@pytest.mark.parametrize(
    "text",
    [
        "x\r\nBcc: evil@example.com\r\n\r\nHello",
        "x\nSubject: another\nTo: evil@example.com",
        ".\r\nMAIL FROM:<evil@example.com>",
        "<script>alert(1)</script> & höflich 🦊 \u202e",
        "=?utf-8?q?=0ABcc:_evil@example.com?=",
        "y" * 250,
    ],
)
def test_hostile_text_adds_no_header_and_no_recipient(tmp_path: Path, text: str) -> None:
    mailbox = Mailbox()
    with server(mailbox) as url:
        assert end(tmp_path, url, VERDICT, text, 0) == ["alert sent to mail"]
    [(recipients, letter)] = mailbox.letters
    assert recipients == ["desk@example.org"]
    assert (
        letter.get_all("To") == ["desk@example.org"]
        and letter["Bcc"] is None
        and len(letter.get_all("Subject", [])) == 1
    )
    assert "\n" not in letter["Subject"] and letter["Subject"].startswith("foxrun: drift at step 2 in ")
    assert LINE in text_of(letter) and "<script>" not in str(letter.get_body(("html",)) or "")
