"""Statuses and comments at servers that check what they are sent as GitHub and GitLab do."""

from __future__ import annotations

import contextlib
import dataclasses
import http.server
import re
import socket
import threading
import time
from typing import Any

import pytest

from orchestrator.alert_text import AlertContext
from orchestrator.compare.verdict import Divergence, OutcomeRow, Verdict, make
from orchestrator.hosts.posting import Answer, Post, post
from orchestrator.hosts.repository import repository_of
from tests.hosts.servers import SHA, TOKEN, Server, host

KINDS = pytest.mark.parametrize("kind", ["github", "gitlab"])
LINE = "FIRST_DIVERGENCE: step=2 leaf=q_grad run_A=0.5 run_B=0.75 delta=0.25"
DRIFT = make(
    "drift",
    "The runs part at step 2 in q_grad.",
    next="`foxrun get NAME` shows more",
    first_divergence=Divergence(step=2, row=2, leaf="q_grad", run_a="0.5", run_b="0.75", delta="0.25", line=LINE),
    outcome=[OutcomeRow(key="total_pnl_usd", a=1000.0, b=-183000.0, delta=-184000.0, percent=-18400.0)],
)
IDENTICAL = make("identical", "250 rows of 711 leaves agree")
CONTEXT = AlertContext(
    workflow="ci-gate-3f0d9a6-x", kind="ci-gate", sha=SHA, branch="ml-alpha-cfc", seed=42, mode=1,
    author="Ada", message="Faster scan", link="https://argo.example/workflows/foxrun/ci-gate-3f0d9a6-x",
)  # fmt: skip
QUICK: dict[str, Any] = {"pause_s": 0.01, "patience_s": 20.0, "read_s": 5.0}


def tell(server: Server, verdict: Verdict | None = DRIFT, context: AlertContext = CONTEXT, **more: Any) -> Answer:
    what = Post(repository=repository_of(server.origin, api=server.api), sha=SHA, context=context, verdict=verdict)
    return post(dataclasses.replace(what, **more), TOKEN, **QUICK)


STATES = {
    "drift": ("failure", "failed"),
    "gate_failed": ("failure", "failed"),
    "job_failed": ("failure", "failed"),
    "infrastructure": ("error", "failed"),
    "incomparable": ("error", "failed"),
    "incomplete": ("error", "failed"),
    "identical": ("success", "success"),
    "within_tolerance": ("success", "success"),
    "succeeded": ("success", "success"),
}


@KINDS
@pytest.mark.parametrize("word", STATES)
def test_each_verdict_has_its_state(kind: str, word: str) -> None:
    with host(kind) as server:
        answer = tell(server, make(word, "what happened"), comment=False)
    assert answer == Answer(done=[f"status foxrun/ci-gate of 3f0d9a61c2b8: {STATES[word][0]}"])
    [status] = server.state.statuses
    assert status["state"] == STATES[word][kind == "gitlab"]
    assert status["description"] == f"{word.replace('_', ' ')}: what happened"


@KINDS
def test_a_status_says_what_and_where(kind: str) -> None:
    with host(kind) as server:
        assert tell(server, comment=False).failed == []
    name = "context" if kind == "github" else "name"
    expected = {
        "sha": SHA,
        "state": "failure" if kind == "github" else "failed",
        name: "foxrun/ci-gate",
        "description": "drift at step 2 in q_grad; P&L -184,000.00 USD (-1.84e+04 %)",
        "target_url": CONTEXT.link,
        **({"ref": "ml-alpha-cfc"} if kind == "gitlab" else {}),
    }
    assert server.state.statuses == [expected]


@KINDS
def test_pending_is_a_status_without_a_comment_and_may_be_said_twice(kind: str) -> None:
    with host(kind) as server:
        assert tell(server, None).failed == []
        assert tell(server, None).failed == []
        assert tell(server, IDENTICAL).failed == []
    assert [status["state"] for status in server.state.statuses][-2:] == ["pending", "success"]
    assert server.state.statuses[0]["description"] == "ci-gate-3f0d9a6-x runs"


COMMENT = f"""\
<!-- foxrun ci-gate -->
### ❌ foxrun ci-gate

| | |
|---|---|
| verdict | **drift** (exit code 3) |
| first divergence | step <code>2</code>, leaf <code>q&#95;grad</code> |
| P&L difference | <code>-184,000&#46;00 USD (-1&#46;84e+04 %)</code> |
| commit | <code>{SHA[:12]}</code> on <code>ml-alpha-cfc</code> by <code>Ada</code>: <code>Faster scan</code> |
| workflow | <code>ci-gate-3f0d9a6-x</code>, seed 42, mode 1 |
| more | <https://argo.example/workflows/foxrun/ci-gate-3f0d9a6-x> |
| next | <code>foxrun get NAME</code><br><code>shows more</code> |

<code>The runs part at step 2 in q&#95;grad&#46;</code>

<code>FIRST&#95;DIVERGENCE&#58; step=2 leaf=q&#95;grad run&#95;A=0&#46;5 run&#95;B=0&#46;75 delta=0&#46;25</code>
"""


@KINDS
def test_one_comment_is_created_and_then_updated(kind: str) -> None:
    with host(kind) as server:
        server.state.note(7, "Looks good to me")
        assert tell(server).done[1:] == ["comment in #7 created"]
        assert server.state.bodies() == ["Looks good to me", COMMENT]
        assert tell(server, IDENTICAL).done[1:] == ["comment in #7 updated"]
    assert len(server.state.bodies()) == 2
    assert "✅ foxrun ci-gate" in server.state.bodies()[1]
    assert "| verdict | **identical** (exit code 0) |" in server.state.bodies()[1]


@KINDS
def test_the_comment_is_found_among_hundreds(kind: str) -> None:
    with host(kind) as server:
        for number in range(150):
            server.state.note(7, f"remark {number}", system=number % 2 == 0)
        tell(server)
        for number in range(150):
            server.state.note(7, f"later remark {number}")
        assert tell(server, IDENTICAL).done[1:] == ["comment in #7 updated"]
    assert sum(body.startswith("<!-- foxrun ci-gate -->") for body in server.state.bodies()) == 1


@KINDS
def test_a_comment_of_somebody_else_with_our_mark_is_left_alone(kind: str) -> None:
    with host(kind) as server:
        server.state.note(7, "<!-- foxrun ci-gate --> gotcha", foreign=True)
        assert tell(server).done[1:] == ["comment in #7 created"]
        assert tell(server).done[1:] == ["comment in #7 updated"]
    assert len(server.state.bodies()) == 2


@KINDS
def test_kinds_of_workflows_have_comments_of_their_own(kind: str) -> None:
    with host(kind) as server:
        tell(server)
        tell(server, context=dataclasses.replace(CONTEXT, kind="nightly"))
        tell(server)
    assert [body.splitlines()[0] for body in server.state.bodies()] == [
        "<!-- foxrun ci-gate -->",
        "<!-- foxrun nightly -->",
    ]


@KINDS
def test_two_that_create_it_at_once_leave_one(kind: str) -> None:
    together = threading.Barrier(2, timeout=20)
    with host(kind) as server:
        server.state.before_create = lambda: together.wait()
        answers: list[Answer] = []
        threads = [threading.Thread(target=lambda: answers.append(tell(server))) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    assert [answer.failed for answer in answers] == [[], []]
    assert server.state.bodies() == [COMMENT]


@KINDS
def test_an_answer_that_is_lost_makes_no_second_comment(kind: str) -> None:
    with host(kind) as server:
        assert tell(server, None).failed == []
        # The status is posted again, which does no harm; the comment is looked for first.
        server.state.lost_answers = ["POST", "POST"]
        answer = tell(server)
    assert answer.failed == []
    assert server.state.bodies() == [COMMENT]


@KINDS
def test_an_older_run_does_not_speak_for_a_newer_commit(kind: str) -> None:
    newer = "b" * 40
    with host(kind) as server:
        server.state.pulls[0] |= {"head": {"sha": newer}, "sha": newer}
        answer = tell(server)
    assert answer.done[1:] == ["no comment in #7: its head is bbbbbbbbbbbb"]
    assert server.state.bodies() == []
    assert len(server.state.statuses) == 1


@KINDS
def test_closed_requests_are_left_alone_and_a_known_one_is_not_looked_for(kind: str) -> None:
    with host(kind) as server:
        closed = "closed" if kind == "github" else "merged"
        server.state.pulls.append({**server.state.pulls[0], "number": 8, "iid": 8, "state": closed})
        tell(server)
        assert set(server.state.notes) == {7}
        looked = [request.path for request in server.state.requests]
        tell(server, pull=7)
    assert not any("commits" in request.path for request in server.state.requests[len(looked) :])


@KINDS
@pytest.mark.parametrize("status", [500, 502, 503, 504, 429])
def test_trouble_that_passes_is_waited_for(kind: str, status: int) -> None:
    with host(kind) as server:
        server.state.trouble = [(status, {})] * 3
        assert tell(server).failed == []
    assert len(server.state.statuses) == 1
    assert server.state.bodies() == [COMMENT]


@KINDS
@pytest.mark.parametrize("status", [429, 503])
def test_the_host_says_when_to_come_back(kind: str, status: int) -> None:
    with host(kind) as server:
        server.state.trouble = [(status, {"Retry-After": "1"})]
        assert tell(server, comment=False).failed == []
    assert server.state.times[1] - server.state.times[0] >= 1.0


def test_githubs_second_limit_is_a_wait_and_no_refusal() -> None:
    with host("github") as server:
        server.state.trouble = [(403, {"Retry-After": "1"})]
        assert tell(server, comment=False).failed == []
        server.state.trouble = [(403, {})]
        [refused] = tell(server, comment=False).failed
    assert "the token may not do this" in refused


@KINDS
def test_a_wait_longer_than_the_patience_is_given_up_at_once(kind: str) -> None:
    with host(kind) as server:
        server.state.trouble = [(429, {"Retry-After": "3600"})]
        started = time.monotonic()
        [failed] = tell(server, comment=False).failed
    assert time.monotonic() - started < 60
    assert "HTTP 429" in failed


@KINDS
def test_what_a_host_refuses_is_said_without_the_token(kind: str) -> None:
    with host(kind) as server:
        server.state.trouble = [(422, {}), (404, {})]
        answer = tell(server)
    where = server.api.split("/")[2]
    assert answer.done == []
    assert answer.failed[0] == f"status foxrun/ci-gate of 3f0d9a61c2b8 not written: {where}: HTTP 422: trouble with ***"
    assert answer.failed[1].startswith(f"comment not written: {where}: HTTP 404: trouble with *** (")


@KINDS
def test_a_wrong_token_and_a_dead_host_are_said(kind: str) -> None:
    with host(kind) as server:
        what = Post(repository=repository_of(server.origin, api=server.api), sha=SHA, context=CONTEXT, verdict=DRIFT)
        answer = post(what, "another", **QUICK)
        assert len(answer.failed) == 2 and "FOXRUN_HOST_TOKEN" in answer.failed[0]
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: every connection is refused
        address = f"http://127.0.0.1:{taken.getsockname()[1]}"
        there = repository_of(f"{address}/desk/alpha", api=f"{address}/api/v{3 if kind == 'github' else 4}")
        answer = post(dataclasses.replace(what, repository=there), TOKEN, pause_s=0.01, patience_s=0.2)
    assert len(answer.failed) == 2 and "does not answer" in answer.failed[0] and TOKEN not in str(answer)


def test_a_redirect_to_another_server_is_not_followed() -> None:
    with host("github") as server, host("github") as other:
        server.state.trouble = [(301, {"Location": f"{other.api}/repos/desk/alpha/statuses/{SHA}"})]
        answer = tell(server, comment=False)
        assert other.state.requests == []
        assert "HTTP 301" in answer.failed[0]
        server.state.trouble = [(307, {"Location": f"/api/v3/repos/desk/alpha/statuses/{SHA}"})]
        assert tell(server, comment=False).failed == []
    assert len(server.state.statuses) == 1


HOSTILE = [
    "$(reboot); `id` | tee /etc/passwd && rm -rf / #",
    "a\nb\r\n| x | y |\n\n# Heading\n/close\n/merge\n- [x] done",
    "@team @everyone @all hello@example.org #1 !2 ~bug $3 GH-1",
    "</code></td><script>alert(1)</script><img src=x onerror=alert(1)> <!-- foxrun ci-gate -->",
    "**bold** [x](https://evil.example) ![i](https://evil.example/p.png) https://evil.example www.evil.example",
    "\u202eevil\u2066 \x1b[31m \x00 ```\n~~~\n\\| \\` &#60;b&#62; &lt;b&gt;",
    "höflich 🦊 日本語 " + "ü" * 250,
    "x" * 250,
]


@KINDS
@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_data(kind: str, text: str) -> None:
    first = dataclasses.replace(DRIFT.first_divergence, leaf=text, line=text) if DRIFT.first_divergence else None
    verdict = dataclasses.replace(DRIFT, message=text, next=f"`{text}` {text}", first_divergence=first)
    context = dataclasses.replace(CONTEXT, branch=text, author=text, message=text, workflow=text, link=text)
    with host(kind) as server:
        assert tell(server, verdict, context).failed == []
        assert tell(server, verdict, context).done[1:] == ["comment in #7 updated"]
    [body] = server.state.bodies()
    ordinary = COMMENT.splitlines()
    lines = body.splitlines()
    assert len(lines) == len(ordinary) - 1  # the link, which is none, is left out
    foreign = "".join(lines[1:]).replace("<br>", "")
    outside = re.sub(r"<code>[^<>]*</code>", "", foreign)
    plain = COMMENT.replace(f"| more | <{CONTEXT.link}> |\n", "").replace("<br>", "")
    assert outside == re.sub(r"<code>[^<>]*</code>", "", "".join(plain.splitlines()[1:]))
    for inside in re.findall(r"<code>([^<>]*)</code>", body):
        assert not set(re.sub(r"&#\d+;", "", inside)) & set("@#`*_[]!|\\<>&~$/:.\n\r\x1b\u202e\u2066")
    for status in server.state.statuses:
        assert "\n" not in status["description"] and "target_url" not in status


def test_the_longest_texts_keep_within_every_limit() -> None:
    text = "|" * 100_000
    verdict = dataclasses.replace(DRIFT, message=text, next="`a` | " * 5000)
    context = dataclasses.replace(CONTEXT, branch=text, author=text, message=text, workflow=text)
    for kind in ("github", "gitlab"):
        with host(kind) as server:
            assert tell(server, verdict, context, name="n" * 300).failed == []
        assert len(server.state.bodies()[0]) <= 65_536 or kind == "gitlab"


class _Odd(http.server.BaseHTTPRequestHandler):
    """Answers every request with what the server holds: (status, type, body); a body None drips for ever."""

    def _serve(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        status, kind, body = self.server.answer  # type: ignore[attr-defined]
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.end_headers()
        with contextlib.suppress(OSError):
            while body is None:
                self.wfile.write(b"[")
                time.sleep(0.05)
            self.wfile.write(body)

    do_GET = do_POST = do_PUT = do_PATCH = _serve

    def log_message(self, format: str, *args: Any) -> None:
        pass


@KINDS
@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (200, b"<html>sign in</html>", "does not answer in JSON"),
        (200, b"[" * 100_000, "does not answer in JSON"),
        (500, b"[" * 100_000, "HTTP 500"),
        (422, b'{"message": "\\u001b[2J\\nnext", "errors": ["\\u009b1m"]}', "HTTP 422: \\x1b[2J next"),
        (403, b'{"message": {"a": ["' + TOKEN.encode() + b'"]}}', '{"a": ["***"]}'),
        (200, None, "its answer does not end"),
        (200, b'[{"number": "x", "state": "open"}, 5]', "the host's answer cannot be read"),
        (200, b'[{"number": "x", "iid": [], "head": 5, "sha": {}, "state": 1}]', "status foxrun/ci-gate of"),
    ],
)
def test_an_odd_answer_is_said_in_one_line(kind: str, status: int, body: bytes | None, said: str) -> None:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Odd)
    server.daemon_threads = True
    server.answer = (status, "text/html", body)  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        base = f"http://127.0.0.1:{server.server_address[1]}"
        api = f"{base}/api/{'v3' if kind == 'github' else 'v4'}"
        repository = repository_of(f"{base}/desk/alpha", api=api)
        what = Post(repository=repository, sha=SHA, context=CONTEXT, verdict=DRIFT)
        answer = post(what, TOKEN, patience_s=0.5, pause_s=0.1)
    finally:
        server.shutdown()
        server.server_close()
    lines = [*answer.done, *answer.failed]
    assert any(said in line for line in lines), lines
    assert all(line.isprintable() and TOKEN not in line for line in lines), lines
