"""The whole of it: twins until they part, the step, the operation, its replay, the cause, remedies that are tried."""

from __future__ import annotations

import dataclasses

from orchestrator.errors import DeadlinePassed, JobFailed, NoPlace
from orchestrator.localize import beyond, pace, races, raw
from orchestrator.localize.causes import judge
from orchestrator.localize.conclusion import chosen, clean, origin_name, told
from orchestrator.localize.facts import UNORDERED, Facts, environments, goes_on
from orchestrator.localize.near_origin import with_source
from orchestrator.localize.operations import FIRST_LOOK, Found, at_once, concluded, first_look, look
from orchestrator.localize.pair import Kind, Pair
from orchestrator.localize.remedies import Tried, code_changes, try_remedies
from orchestrator.localize.replay import computes, replay
from orchestrator.localize.result import DELAYS, KINDS, PACE, Localization, Trial
from orchestrator.localize.session import THREADS, Session
from orchestrator.localize.steps import StepsFound, compare_steps

MEMORY = ("allocator", "memory")


def kind_named(name: str) -> Kind:
    """A kind of pair by its name."""
    return Kind(name=name, threads=THREADS if name in ("threads", "load") else None, load=name == "load")


def localize(session: Session) -> Localization:
    """Make pairs of twins until one parts, and find out where and why.

    Raises:
        JobFailed: the program fails; DeadlinePassed: it does not end in time; UsageError: it cannot be started;
        NoPlace: no space is left, or the working directory is gone, before anything was compared.
    """
    try:
        parted = _until_parted(session)
    except KeyboardInterrupt:
        session.listener.stage(f"interrupted: {len(session.trials)} pairs agreed, and nothing parted so far")
        raise
    except (DeadlinePassed, NoPlace) as stop:
        if not session.trials:
            raise
        session.not_looked_at.append(f"more pairs than {len(session.trials)}: {stop}")
        parted = None
    if session.options.dump_steps is not None and (missing := raw.not_kept(session.dumps, *session.options.dump_steps)):
        session.not_looked_at.append(missing)
    if parted is None:
        return dataclasses.replace(clean(session), dumps=session.dumps)
    kind, steps, pair = parted
    found: list[Found] = []
    tried: Tried | None = None
    try:
        if steps.step is not None:
            session.go_on_from(pair, steps.step)
        race = _operations(session, kind, steps, pair, found)
        facts = _facts(session, kind, steps, chosen(found), pair)
        if race is not None:
            facts = dataclasses.replace(facts, narrowed={race.kind.name: race.found is not None})
            facts = dataclasses.replace(facts, waits=races.waits(race.kind))
            kind = races.hostile(race.kind) if race.found is not None else kind
        elif kind.name == PACE:
            facts = dataclasses.replace(facts, narrowed={PACE: True})
            kind = races.hostile(kind)
        main = chosen(found)
        if main is not None and session.options.replay_runs:
            facts = dataclasses.replace(facts, replay=replay(session, main, found))
        tried = Tried(facts=facts, remedies=[])
        if session.options.remedies:
            rate = races.RATE if kind.name in (DELAYS, PACE) else _rate(session, kind)
            try_remedies(session, kind, tried, judge(facts), rate)
    except (DeadlinePassed, NoPlace, KeyboardInterrupt) as stop:
        _ended_early(session, stop, tried)
    if tried is None:
        tried = Tried(facts=_facts(session, kind, steps, chosen(found), pair), remedies=[])
    code_changes(tried)
    return told(session, steps, pair, found, tried)


def _ended_early(session: Session, stop: BaseException, tried: Tried | None) -> None:
    """What is known is told all the same: a place without a remedy is more than nothing."""
    why = "the time was over" if isinstance(stop, DeadlinePassed) else str(stop) or "interrupted"
    text = f"what came after pair {session.pairs}: {why}"
    if session.options.remedies and (tried is None or not tried.remedies):
        text += "; no remedy was tried"
    session.not_looked_at.append(text)
    session.listener.stage(f"{why}; what was found so far:")


def _until_parted(session: Session) -> tuple[Kind, StepsFound, Pair] | None:
    """Pairs of each kind in turn; the first that parts decides the kind of all that follow."""
    order = ["hostile"] * session.options.trials + ["threads", "load"]
    window = dataclasses.replace(
        FIRST_LOOK, stop_after=session.options.stop_after, dump_steps=session.options.dump_steps
    )
    gentle: Kind | None = None
    delayed: list[Kind] = []
    for number, name in enumerate(order, start=1):
        if number > 1 and not session.affords():
            session.not_looked_at.append(f"pairs that {KINDS[name]}: the time was over")
            break
        provoking = name in (DELAYS, PACE)
        kind = pace.KIND if name == PACE else delayed.pop(0) if name == DELAYS else kind_named(name)
        kind = gentle if gentle is not None and not provoking else kind
        pair = session.run(kind, window, f"trial {number}: twins that {KINDS[name]}")
        if gentle is None and crashed(pair):
            session.crashed = (
                f"twins whose memory lies elsewhere and holds other bytes crash ({pair.codes[0]}, {pair.codes[1]}): "
                "native code damages memory"
            )
            session.notes.append(f"{session.crashed}; they ran on without these two differences")
            written = beyond.before_the_crash(pair.a.main) or beyond.before_the_crash(pair.b.main)
            if written is not None:
                return _without_memory(kind), written, pair
            session.drop(pair)
            gentle = _without_memory(kind)
            pair = session.run(gentle, window, "the same twins, with memory as it comes")
            kind = gentle
        steps = races.compared(session, pair) if provoking else session.compared(pair)
        if not steps.leaf and not steps.made and session.printed and not session.counts_printed:
            session.counts_printed = concluded(pair, steps, 0).origin is not None
            steps = session.compared(pair)
        if session.options.dump_steps is not None:
            session.dumps = raw.compare_dumps(pair.a.main.folder, pair.b.main.folder)
        if steps.leaf:
            session.listener.stage(f"parted at {_at(steps)} in {steps.leaf}")
            return kind, steps, pair
        if (written := beyond.surely(pair.a.main) or beyond.surely(pair.b.main)) is not None:
            session.listener.stage(f"{written.note}, at {_at(written)}")
            return kind, written, pair
        session.trials.append(Trial(number=number, pair=name, note=_short(steps)))
        _see(session, pair, steps)
        if number == 1 and races.possible(pair) and session.request.other is None:
            delayed = list(races.kinds(pair))  # no luck is needed for a race that is provoked
            for place in range(len(delayed)):
                order.insert(1 + 2 * place, DELAYS)
        if number == 1 and pace.measures(pair) and session.request.other is None:
            order.insert(1, PACE)
        session.drop(pair)
    return None


def _without_memory(kind: Kind) -> Kind:
    return dataclasses.replace(kind, hostilities=tuple(h for h in kind.hostilities if h not in MEMORY))


def crashed(pair: Pair) -> bool:
    """Whether a twin died of a signal that damaged memory causes (SIGSEGV, SIGABRT, SIGBUS), before a row parted."""
    if not any(code in (139, 134, 135) for code in pair.codes):
        return False
    steps = compare_steps(pair.a.main.rows(), pair.b.main.rows())
    return steps.step is None or steps.leaf == "(row)"


def _short(steps: StepsFound) -> str:
    return steps.note if steps.note != "(files)" else "no steps were seen; a file that the twins wrote differs"


def _see(session: Session, pair: Pair, steps: StepsFound) -> None:
    """What an agreeing pair did not show."""
    if not pair.a.processes:
        text = "the program itself: it did not load the tracer (no Python, or one that ignores PYTHONPATH)"
    elif not steps.made:
        compared = "what its modules computed and the files" if steps.rows else "only the files"
        compared = compared.replace("the files", "what it printed, the files") if session.counts_printed else compared
        text = (
            f"steps: none were seen (an optimizer's step ends one, or foxrun.step(n) does); {compared} that it wrote "
            "were compared"
        )
    elif session.options.stop_after is not None and (pair.a.main.end or {}).get("how") == "stopped":
        text = f"what comes after step {session.options.stop_after}: --steps ended the program there"
    else:
        return
    if text not in session.not_looked_at:
        session.not_looked_at.append(text)


def _operations(session: Session, kind: Kind, steps: StepsFound, pair: Pair, found: list[Found]) -> races.Raced | None:
    """Trials with events. Two that name one origin are enough; else three, since the first divergence may alternate.

    Where several threads run and nothing that is computed explains it, a race is provoked.
    """
    wanted = min(session.options.trials, 3)
    race: races.Raced | None = None
    if kind.name == DELAYS:
        race = races.closer(session, kind, concluded(pair, steps, 0))
        found += [race.found] if race.found is not None else []
        _tell(session, kind, steps if race.found is None else race.found.steps, race.found)
        return race
    resumed = session.request.other is not None
    first = at_once(pair, steps, resumed)
    early = first_look(pair, steps) if first is None and not resumed else None
    if first is not None:
        found.append(first)
    _tell(session, kind, steps, first)
    attempts, measured = 0, pace.measures(pair)
    while attempts < wanted + 2 and (not found or session.affords(1.5)):
        if race is None and not resumed and (attempts or races.several(pair)) and _may_race(pair, found):
            race = races.provoke(session, steps, pair)
            if _shows(session, race, found):
                break
        names = [origin_name(item) for item in found]
        if len(found) >= wanted or (len(names) >= 2 and names[-1] == names[-2]):
            break
        attempts += 1
        number = len(session.trials) + 1
        known = next((item for item in found if item.origin is not None), None)
        # What is recorded slows a race down, so that it ends alike: other load makes it end in another way.
        beside = dataclasses.replace(kind, load=True) if not found and attempts > 2 else kind
        what = f"trial {number}: the same, with every operation around {_at(steps)}"
        try:
            one = look(session, beside, steps, what, dump=_to_dump(known))
        except JobFailed as error:  # what parts them may as well end them; what is known by now stays
            session.trials.append(Trial(number=number, pair=kind.name, note=f"a twin failed: {error}"[:200]))
            session.notes.append(f"a further pair failed: {error}")
            continue
        if one is None:
            session.trials.append(Trial(number=number, pair=kind.name, note="agreed this time"))
            session.start_over()
            if measured and not resumed and race is None and kind.name != PACE:
                measured = False
                race = pace.provoke(session, steps)  # no luck is needed where measured time decides
                if _shows(session, race, found):
                    break
                kind = pace.beside(kind)
            continue
        if early is not None and origin_name(one) == origin_name(early):
            one = early  # the same was there before it showed in a leaf
        found.append(one)
        _tell(session, kind, one.steps, one)
    return race


def _shows(session: Session, race: races.Raced | None, found: list[Found]) -> bool:
    """Take in what a provoked race showed; whether it showed the origin, so that no more trials are needed."""
    if race is None or race.found is None:
        return False
    found.append(race.found)
    _tell(session, race.kind, race.found.steps, race.found)
    return race.found.origin is not None


def _may_race(pair: Pair, found: list[Found]) -> bool:
    """Whether threads or processes run beside each other, and no trial found what a race would not do."""
    return races.possible(pair) and all(races.could_be(item.origin) for item in found)


def _to_dump(known: Found | None) -> tuple[tuple[str, int], ...]:
    """The origin's own tensors are kept in the next trial, for its replay."""
    if known is None or known.origin is None or not computes(known.origin):
        return ()
    return ((known.origin.process, known.origin.a.i),)


def _tell(session: Session, kind: Kind, steps: StepsFound, found: Found | None) -> None:
    number = len(session.trials) + 1
    origin = found.origin if found is not None else None
    name = "" if origin is None else f"{origin.a.name} at {origin.a.where or '?'}"
    note = "" if steps.step is not None else _short(steps)
    session.trials.append(
        Trial(number=number, pair=kind.name, step=steps.step, leaf=steps.leaf, operation=name, note=note)
    )
    if origin is not None:
        session.listener.stage(f"origin: {name} ({origin.how})")


def _rate(session: Session, kind: Kind) -> float:
    """How often such a pair parts, cautiously: of n pairs that all parted, n / (n + 1)."""
    mine = [trial for trial in session.trials if trial.pair == kind.name]
    return sum(1 for trial in mine if trial.leaf) / (len(mine) + 1)


def _facts(session: Session, kind: Kind, steps: StepsFound, main: Found | None, pair: Pair) -> Facts:
    shown = main.pair if main is not None else pair
    agreed = sum(1 for trial in session.trials if trial.pair == "hostile" and not trial.leaf)
    facts = Facts(
        steps=main.steps if main is not None else steps,
        origin=main.origin if main is not None else None,
        leads=main.leads if main is not None else (),
        header=shown.a.main.header,
        other_header=shown.b.main.header,
        resumed=session.request.other is not None
        and goes_on(shown.a.main.header, shown.b.main.header, session.request.command, session.request.other),
        unordered=shown.a.mentions(UNORDERED) or shown.b.mentions(UNORDERED),
        two_commands=session.request.other is not None,
        environments=environments(session.request.command, session.request.other),
        parted_kind=kind.name,
        hostile_agreed=agreed,
        threads=max(main.aligned.threads if main is not None else 1, races.threads_of(shown)),
        in_child=main is not None and main.origin is not None and main.origin.process != shown.a.main.name,
        children=main.children if main is not None else 0,
        crashed=session.crashed,
    )
    return with_source(facts, main.origin if main is not None else None, shown)


def _at(steps: StepsFound) -> str:
    if steps.step is None:
        return "the whole run"
    return f"step {steps.step}"
