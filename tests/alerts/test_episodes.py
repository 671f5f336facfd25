"""A branch breaks, stays broken and is mended: who is told, and how often, against real receivers and a real state."""

from __future__ import annotations

import dataclasses
import json
import multiprocessing
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from orchestrator.alert_delivery import queue
from orchestrator.alert_episodes import EPISODES_KEPT, RunFacts, empty, wanted
from orchestrator.alert_rules import Rule, parse_quiet
from orchestrator.alert_state import FileState
from orchestrator.alert_text import AlertContext
from orchestrator.alerting import Policy, tell_channels
from orchestrator.alerts import message_of
from orchestrator.compare.verdict import make
from orchestrator.policies import told
from orchestrator.settings import Settings
from tests.alerts.receivers import Webhook, webhook
from tests.alerts.test_alerts import VERDICT

NOON = datetime(2026, 1, 14, 12, tzinfo=UTC)
QUICK: dict[str, Any] = {"attempts": 2, "backoff_s": 0.01, "deadline_s": 20.0}
GOOD = make("identical", "everything agrees")


class Team:
    """A state, channels and rules; ``run`` is a workflow that ends."""

    def __init__(self, home: Path, *rules: Rule, **hooks: Webhook) -> None:
        self.home = home
        self.policy = Policy(
            channels={name: f"json://127.0.0.1:{hook.port}/{name}-s3cr3t" for name, hook in hooks.items()},
            rules=rules or (Rule(),),
            state=FileState(home),
        )
        self.runs = 0

    def run(
        self, verdict: Any = VERDICT, *, branch: str = "ml-alpha-1", kind: str = "ci-gate", started: int | None = None,
        now: datetime = NOON, sha: str = "", **effort: Any,
    ) -> list[str]:  # fmt: skip
        self.runs += 1
        moment = NOON + timedelta(minutes=self.runs if started is None else started)
        context = AlertContext(
            workflow=f"{kind}-{self.runs}", kind=kind, branch=branch, sha=sha or f"{self.runs:040x}",
            origin="https://github.com/desk/alpha", started=moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
        )  # fmt: skip
        return list(tell_channels(verdict, context, self.policy, clock=lambda: now, **{**QUICK, **effort}))


def titles(hook: Webhook) -> list[str]:
    return [body["title"] for _, _, body in hook.received]


BROKE = "foxrun: drift at step 2 in ci-gate-1"
MENDED = "foxrun: mended: ci-gate on ml-alpha-1 is identical"


def test_three_broken_commits_and_a_mended_one_are_two_messages_a_channel(tmp_path: Path) -> None:
    with webhook() as desk, webhook() as oncall:
        team = Team(tmp_path, desk=desk, oncall=oncall)
        assert team.run() == ["alert sent to desk", "alert sent to oncall"]
        assert team.run() == ["no alert: ml-alpha-1 is broken since 000000000000, which was told"]
        team.run(make("job_failed", "leg-a: exit code 1"))
        assert team.run(GOOD) == ["alert sent to desk", "alert sent to oncall"]
        assert team.run(GOOD) == ["no alert: identical"]
    for hook in (desk, oncall):
        assert titles(hook) == [BROKE, MENDED]
        first, last = (body["foxrun"] for _, _, body in hook.received)
        assert (first["event"], first["step"], first["leaf"], first["pnl_difference_usd"]) == (
            "broken",
            2,
            "q_grad",
            -184000.0,
        )
        assert (last["event"], last["broken_since"], last["verdict"]) == ("mended", f"{1:040x}", "identical")
        assert hook.received[1][2]["message"].startswith(
            "ml-alpha-1 is mended; it was broken for 3 commits, since 000000000000\neverything agrees\n"
        )
        assert [body["type"] for _, _, body in hook.received] == ["failure", "success"]


def test_it_can_break_again(tmp_path: Path) -> None:
    with webhook() as desk:
        team = Team(tmp_path, desk=desk)
        for verdict in (VERDICT, GOOD, VERDICT, VERDICT, GOOD):
            team.run(verdict)
    assert len(desk.received) == 4


def test_branches_and_kinds_have_episodes_of_their_own(tmp_path: Path) -> None:
    with webhook() as desk:
        team = Team(tmp_path, desk=desk)
        team.run()
        team.run(kind="nightly")
        team.run(branch="ml-alpha-2")
        team.run(GOOD, branch="ml-alpha-2")
        team.run(GOOD, kind="nightly")
        team.run()
    assert len(desk.received) == 5


def test_runs_without_a_branch_are_told_each(tmp_path: Path) -> None:
    with webhook() as desk:
        team = Team(tmp_path, desk=desk)
        for _ in range(3):
            team.run(branch="")
        team.run(GOOD, branch="")
    assert len(desk.received) == 3


def test_what_hides_the_bits_does_not_hide_that_they_part_later(tmp_path: Path) -> None:
    with webhook() as desk:
        team = Team(tmp_path, desk=desk)
        team.run(make("infrastructure", "S3 is away"))
        team.run(make("infrastructure", "S3 is away"))
        team.run()
        team.run(make("infrastructure", "S3 is away"))
        team.run()
        team.run(GOOD)
    assert titles(desk) == [
        "foxrun: infrastructure in ci-gate-1",
        "foxrun: drift at step 2 in ci-gate-3",
        MENDED,
    ]


def test_an_older_run_that_ends_later_neither_mends_nor_breaks(tmp_path: Path) -> None:
    with webhook() as desk:
        team = Team(tmp_path, desk=desk)
        team.run(started=10)
        assert team.run(GOOD, started=5) == ["no alert: a newer run of ml-alpha-1 is broken"]
        team.run(GOOD, started=20)
        assert team.run(started=15) == ["no alert: a newer run of ml-alpha-1 is good already"]
        team.run(started=30)
        team.run(GOOD, started=30)  # the same workflow, retried
    assert len(desk.received) == 4


def test_each_rule_has_its_verdicts_branches_and_channels(tmp_path: Path) -> None:
    rules = (
        Rule(verdicts=frozenset({"drift"}), branches=("main",), channels=("oncall",)),
        Rule(verdicts=frozenset({"drift", "infrastructure"}), channels=("desk",)),
        Rule(verdicts=frozenset({"identical"}), kinds=("nightly",), channels=("desk",)),
    )
    with webhook() as desk, webhook() as oncall:
        team = Team(tmp_path, *rules, desk=desk, oncall=oncall)
        team.run()
        team.run(branch="main")
        team.run(make("job_failed", "leg-a: exit code 1"), branch="other")
        team.run(GOOD, branch="main")
        for _ in range(2):
            team.run(GOOD, kind="nightly")
    assert titles(oncall) == ["foxrun: drift at step 2 in ci-gate-2", "foxrun: mended: ci-gate on main is identical"]
    assert titles(desk) == [
        BROKE,
        "foxrun: drift at step 2 in ci-gate-2",
        "foxrun: mended: ci-gate on main is identical",
        "foxrun: identical in nightly-5",
        "foxrun: identical in nightly-6",
    ]


def test_a_rule_may_repeat_and_may_leave_out_good_news(tmp_path: Path) -> None:
    with webhook() as desk:
        team = Team(tmp_path, Rule(repeat=True, mended=False), desk=desk)
        for verdict in (VERDICT, VERDICT, VERDICT, GOOD):
            team.run(verdict)
    assert len(desk.received) == 3


def test_quiet_hours_delay_and_lose_nothing(tmp_path: Path) -> None:
    night, morning = NOON.replace(hour=23), NOON.replace(hour=6) + timedelta(days=1)
    with webhook() as desk, webhook() as oncall:
        rules = (Rule(channels=("desk",), quiet=(parse_quiet("22:00-06:00 UTC"),)), Rule(channels=("oncall",)))
        team = Team(tmp_path, *rules, desk=desk, oncall=oncall)
        assert team.run(now=night) == [
            "quiet hours: desk is told after 2026-01-15T06:00:00Z, by the next run, or foxrun alert --flush",
            "alert sent to oncall",
        ]
        team.run(GOOD, now=night)
        assert (len(desk.received), len(oncall.received)) == (0, 2)
        assert team.run(GOOD, now=morning - timedelta(seconds=1)) == ["no alert: identical"]
        assert team.run(GOOD, now=morning)[1:] == ["alert sent to desk (2 messages)"]
        assert titles(desk) == titles(oncall) == [BROKE, MENDED]


def test_a_channel_that_fails_for_a_while_still_gets_its_message(tmp_path: Path) -> None:
    with webhook(*[503] * 6, 200) as desk:
        team = Team(tmp_path, desk=desk)
        assert team.run(attempts=20) == ["alert sent to desk"]
    assert len(desk.received) == 7
    assert FileState(tmp_path).read()["outbox"] == []


def test_a_dead_channel_is_shown_kept_and_told_of_elsewhere(tmp_path: Path) -> None:
    with webhook() as desk, webhook(*[500] * 4, 200) as dead:
        team = Team(tmp_path, desk=desk, dead=dead)
        said = team.run()
        assert said[0] == "alert sent to desk"
        assert said[1].startswith(f"alert to json://127.0.0.1:{dead.port}/*** failed after 2 attempts: ")
        assert said[2] == "dead: 1 message kept, to be sent when it answers"
        assert said[3].startswith("channel dead has not taken 1 message since 2026-01-14T12:00:00Z: ")
        shown = told(Settings(home=str(tmp_path)), "ci-gate-1")
        assert shown[0] == "desk: told at 2026-01-14T12:00:00Z"
        assert shown[1].startswith("dead: not delivered: ") and shown[1].endswith("; goes on trying")
        team.run(GOOD)  # the dead one fails again, in order; the other one hears of it
        note = desk.received[1][2]["message"].splitlines()[-1]
        assert note.startswith("note: channel dead has not taken 1 message since 2026-01-14T12:00:00Z: ")
        assert desk.received[1][2]["foxrun"]["undelivered"] == [note.removeprefix("note: ")]
        assert dead.answers == [200]
        team.run(GOOD)
        assert titles(dead)[-2:] == [BROKE, MENDED]
        text = (tmp_path / "alerts" / "state.json").read_text()
    assert "s3cr3t" not in text and "s3cr3t" not in "".join(said)
    assert FileState(tmp_path).read()["outbox"] == []


def test_a_message_for_a_channel_that_is_not_set_here_waits(tmp_path: Path) -> None:
    with webhook() as desk:
        team = Team(tmp_path, Rule(channels=("desk", "elsewhere")), desk=desk)
        said = team.run()
        assert said[0] == "no channel is called elsewhere here: its message waits (alerts in foxrun.yaml)"
        assert [entry["channel"] for entry in team.policy.state.read()["outbox"]] == ["elsewhere"]
        channels = {**team.policy.channels, "elsewhere": f"json://127.0.0.1:{desk.port}/other"}
        team.policy = dataclasses.replace(team.policy, channels=channels)
        assert "alert sent to elsewhere (2 messages)" in team.run(GOOD)
    assert len(desk.received) == 4


def _end(home: str, port: int, number: int) -> None:
    context = AlertContext(
        workflow=f"w{number}", kind="ci-gate", branch="b", sha=f"{number:040x}", started="2026-01-14T12:00:00Z"
    )
    policy = Policy(channels={"desk": f"json://127.0.0.1:{port}"}, rules=(Rule(),), state=FileState(Path(home)))
    list(tell_channels(VERDICT, context, policy, **QUICK))


def test_many_at_once_tell_once(tmp_path: Path) -> None:
    with webhook() as desk:
        fork = multiprocessing.get_context("spawn")
        processes = [fork.Process(target=_end, args=(str(tmp_path), desk.port, n)) for n in range(3)]
        threads = [threading.Thread(target=_end, args=(str(tmp_path), desk.port, 10 + n)) for n in range(8)]
        workers: list[Any] = [*processes, *threads]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(120)
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert len(desk.received) == 1
    [episode] = FileState(tmp_path).read()["episodes"].values()
    assert len(episode["commits"]) == 11


def test_who_was_killed_while_sending_leaves_its_messages_to_the_next(tmp_path: Path) -> None:
    with webhook() as desk:
        team = Team(tmp_path, Rule(quiet=(parse_quiet("11:00-12:30 UTC"),)), desk=desk)
        team.run()
        soon = (NOON + timedelta(minutes=40)).strftime("%Y-%m-%dT%H:%M:%SZ")

        def claim(state: dict[str, Any]) -> None:
            state["outbox"][0]["claimed"] = f"{soon} somebody"

        team.policy.state.change(claim)
        team.run(GOOD, branch="other", now=NOON + timedelta(minutes=35))
        assert desk.received == []
        team.run(GOOD, branch="other", now=NOON + timedelta(minutes=41))
    assert titles(desk) == [BROKE]


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"version": 9}', '{"version": 1, "outbox": {}}', "\x00"])
def test_a_damaged_state_tells_once_too_often_and_not_too_little(tmp_path: Path, damage: str) -> None:
    (tmp_path / "alerts").mkdir()
    (tmp_path / "alerts" / "state.json").write_text(damage)
    with webhook() as desk:
        assert Team(tmp_path, desk=desk).run() == ["alert sent to desk"]
    assert titles(desk) == [BROKE]


def test_a_state_that_cannot_be_kept_is_said_and_the_alert_goes_out(tmp_path: Path) -> None:
    (tmp_path / "alerts").write_text("a file where a folder should be")
    with webhook() as desk:
        said = Team(tmp_path, desk=desk).run()
    assert said[0].startswith("alerts cannot remember what was told: ")
    assert said[-1] == "alert sent to 1 of 1 channel: drift"
    assert len(desk.received) == 1


def test_the_state_stays_small() -> None:
    state, message = empty(), message_of(VERDICT, AlertContext(workflow="w" * 250, branch="b" * 250))
    for number in range(EPISODES_KEPT + 20):
        run = RunFacts(
            origin="https://github.com/desk/alpha", branch="b" * 250 + str(number), kind="ci-gate",
            workflow=f"w{number}", sha=f"{number:040x}", started=f"2026-01-14T12:00:00.{number:06}Z", verdict="drift",
            exit_code=3,
        )  # fmt: skip
        [want], _ = wanted(state, run, (Rule(),), ["desk"], NOON)
        queue(state, message, want, workflow=run.workflow, now=NOON)
    assert (len(state["episodes"]), len(state["outbox"]), len(state["deliveries"])) == (EPISODES_KEPT, 50, 200)
    assert state["outbox"][0]["workflow"] == f"w{EPISODES_KEPT + 20 - 50}"
    assert len(json.dumps(state).encode()) < 900_000


HOSTILE = ["$(reboot); `id`", "a\nb\r\nSubject: x", "{{workflow.name}} $(X) %s {0}", "höflich 🦊 \u202e", "x" * 250]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_names_are_data(tmp_path: Path, text: str) -> None:
    with webhook() as desk:
        team = Team(tmp_path, desk=desk)
        team.run(branch=text, kind=text, sha=text)
        team.run(branch=text, kind=text, sha=text)
        team.run(GOOD, branch=text, kind=text, sha=text)
    assert [body["foxrun"]["branch"] for _, _, body in desk.received] == [text, text]
    assert all("\n" not in title and len(title) <= 120 for title in titles(desk))
