"""Alerts: the only module that talks to alert channels, through apprise.

Slack, e-mail, webhooks, PagerDuty and the rest are named by apprise URLs (docs/alerts.md). A failing alert never
raises and never changes the verdict: it is returned, with its URL masked. apprise is imported by `send` alone.
"""

from __future__ import annotations

import contextlib
import logging
import re
import threading
import time
import warnings
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from orchestrator.alert_rules import named
from orchestrator.alert_text import AlertContext, body_of, one_line, payload, title_of
from orchestrator.compare.verdict import IDENTICAL, SUCCEEDED, WITHIN_TOLERANCE, Verdict

__all__ = ["AlertContext", "AlertFailure", "Message", "mask", "message_of", "send", "send_all"]

QUIET = frozenset({IDENTICAL, SUCCEEDED, WITHIN_TOLERANCE})
ATTEMPTS = 3
BACKOFF_S, LONGEST_BACKOFF_S = 1.0, 15.0  # before the second attempt; doubled before each later one
TIMEOUT_S = 10.0  # to connect, and again to be answered
DEADLINE_S = 90.0  # for all channels together: the exit handler's pod is waiting

# Channels that take JSON as it is get the facts as fields; the others get the text.
_STRUCTURED = frozenset({"json", "jsons"})
# Safe to show whatever the channel: they say where or how, never who may.
_OPEN_PARAMETERS = frozenset({"method", "format", "overflow", "verify", "rto", "cto", "redirect", "mode", "port"})


@dataclass(frozen=True, kw_only=True)
class AlertFailure:
    """A channel that was not reached: its masked URL, why, and after how many attempts (0: it was never valid)."""

    url: str
    reason: str
    attempts: int = 0

    def __str__(self) -> str:
        tries = f" after {self.attempts} attempts" if self.attempts > 1 else ""
        return f"alert to {self.url} failed{tries}: {self.reason}"


@dataclass(frozen=True, kw_only=True)
class Message:
    """What one channel is told: a line, a text, the facts for programs; ``good``: nothing to worry about."""

    title: str
    body: str
    fields: dict[str, Any]
    good: bool


def message_of(verdict: Verdict, context: AlertContext) -> Message:
    """The message that a verdict makes."""
    # In a mail's subject `=?` would begin an encoded word, which may hold anything.
    title = title_of(verdict, context).replace("=?", "= ?")
    return Message(
        title=title, body=body_of(verdict, context), fields=payload(verdict, context),
        good=verdict.exit_code == 0,
    )  # fmt: skip


def send(
    verdict: Verdict,
    urls: Sequence[str],
    *,
    context: AlertContext,
    quiet: Collection[str] = QUIET,
    attempts: int = ATTEMPTS,
    backoff_s: float = BACKOFF_S,
    timeout_s: float = TIMEOUT_S,
    deadline_s: float = DEADLINE_S,
) -> list[AlertFailure]:
    """Tell every channel about the verdict, unless it is one of ``quiet``. Returns the channels that failed.

    Never raises; the rest is as of ``send_all``.
    """
    wanted = list(dict.fromkeys(text.strip() for text in urls if text.strip()))
    if verdict.verdict in quiet or not wanted:
        return []
    message = message_of(verdict, context)
    results = send_all(
        {url: [message] for url in wanted},
        attempts=attempts, backoff_s=backoff_s, timeout_s=timeout_s, deadline_s=deadline_s,
    )  # fmt: skip
    return [failure for [failure] in results.values() if failure is not None]


def send_all(
    queues: Mapping[str, Sequence[Message]],
    *,
    attempts: int = ATTEMPTS,
    backoff_s: float = BACKOFF_S,
    timeout_s: float = TIMEOUT_S,
    deadline_s: float = DEADLINE_S,
) -> dict[str, list[AlertFailure | None]]:
    """Send each channel (URL) its messages in order, all channels at once; what became of each, None where it arrived.

    Never raises. A failed attempt is repeated up to ``attempts`` in all, ``backoff_s`` seconds later and then twice as
    long each time up to LONGEST_BACKOFF_S, while all channels together stay within ``deadline_s``. What follows a
    message that failed is not tried.
    """
    end = time.monotonic() + deadline_s
    effort = _Effort(attempts=attempts, backoff_s=backoff_s, timeout_s=timeout_s, end=end)
    done: dict[str, list[AlertFailure | None]] = {url: [] for url in queues}
    with _warnings() as said:
        threads = []
        for url, messages in queues.items():
            channel = _channel(url, effort, said[threading.get_ident()])
            if isinstance(channel, AlertFailure):
                done[url] = [channel for _ in messages]
                continue
            # Daemon threads: a channel that answers a byte a minute defeats every socket timeout, and must not hold us.
            threads.append(
                threading.Thread(target=_deliver, args=(url, channel, messages, effort, said, done[url]), daemon=True)
            )
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(max(0.0, end - time.monotonic()))
        outcomes = {}
        for url, messages in queues.items():
            so_far = list(done[url])
            late = AlertFailure(url=mask(url), reason=f"not done within {deadline_s:g} s", attempts=1)
            outcomes[url] = [*so_far, *(late for _ in range(len(messages) - len(so_far)))]
    return outcomes


def problem_of(url: str) -> str:
    """Why a URL names no channel, without its secrets; empty when it does. Sends nothing."""
    with _warnings() as said:
        effort = _Effort(attempts=1, backoff_s=0.0, timeout_s=TIMEOUT_S, end=0.0)
        channel = _channel(url, effort, said[threading.get_ident()])
    return channel.reason if isinstance(channel, AlertFailure) else ""


@dataclass(frozen=True, kw_only=True)
class _Effort:
    attempts: int
    backoff_s: float
    timeout_s: float
    end: float


def _channel(url: str, effort: _Effort, said: list[str]) -> Any:
    """The channel of a URL, ready to send, or an AlertFailure where the URL is not one."""
    said.clear()
    try:
        with warnings.catch_warnings():
            # apprise loads every plugin at the first URL, and some still import modules that Python deprecates.
            warnings.simplefilter("ignore")
            import apprise

            channel: Any = apprise.Apprise.instantiate(url, asset=_asset(apprise))
    except Exception as error:  # plugins check their URLs in their own ways
        return AlertFailure(url=mask(url), reason=_redacted(f"not a valid alert URL: {error}", url))
    if channel is None:
        reason = _redacted("; ".join(said) or "apprise does not know such a URL", url)
        return AlertFailure(url=mask(url), reason=f"not a valid alert URL: {reason}")
    # A URL may set its own, as apprise documents (?cto=, ?rto=).
    if "cto=" not in url:
        channel.socket_connect_timeout = effort.timeout_s
    if "rto=" not in url:
        channel.socket_read_timeout = effort.timeout_s
    return channel


def _deliver(
    url: str, channel: Any, messages: Sequence[Message], effort: _Effort,
    said: Mapping[int, list[str]], done: list[AlertFailure | None],
) -> None:  # fmt: skip
    failed: AlertFailure | None = None
    for message in messages:
        try:
            failed = failed or _attempt(url, channel, message, effort, said[threading.get_ident()])
        except Exception as error:  # a channel's own code may raise anything, and an alert must not end the caller
            reason = _redacted(f"{type(error).__name__}: {error}", url)
            failed = AlertFailure(url=mask(url), reason=reason, attempts=1)
        done.append(failed)


def _attempt(url: str, channel: Any, message: Message, effort: _Effort, said: list[str]) -> AlertFailure | None:
    from apprise import NotifyFormat, NotifyType

    kind = NotifyType.SUCCESS if message.good else NotifyType.FAILURE
    if _scheme(url) in _STRUCTURED:
        channel.payload_extras["foxrun"] = message.fields
    made = 0
    while True:
        said.clear()
        made += 1
        if channel.notify(body=message.body, title=message.title, notify_type=kind, body_format=NotifyFormat.TEXT):
            return None
        wait_s = min(effort.backoff_s * 2 ** (made - 1), LONGEST_BACKOFF_S)
        if made >= effort.attempts or time.monotonic() + wait_s >= effort.end:
            reason = _redacted("; ".join(said) or "the channel did not say why", url)
            return AlertFailure(url=mask(url), reason=reason, attempts=made)
        time.sleep(wait_s)


def _asset(apprise: Any) -> Any:
    """foxrun's name on the message, nothing kept on disk, and no picture fetched from a third party."""
    return apprise.AppriseAsset(
        app_id="foxrun",
        app_desc="foxrun",
        app_url="",
        image_url_mask="",
        image_url_logo="",
        storage_mode=apprise.PersistentStoreMode.MEMORY,
        async_mode=False,
    )


@contextlib.contextmanager
def _warnings() -> Iterator[Mapping[int, list[str]]]:
    """What apprise logs meanwhile, by thread: its own results are only true or false. Kept off the terminal."""
    said: defaultdict[int, list[str]] = defaultdict(list)

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said[threading.get_ident()].append(record.getMessage())

    logger, handler = logging.getLogger("apprise"), Keep(logging.WARNING)
    before, passed_on = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.WARNING)
    logger.propagate = False
    try:
        yield said
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
        logger.propagate = passed_on


# What must not be said


def mask(url: str) -> str:
    """An alert URL that is safe to print: scheme and host stay; user, password, path and parameters become ``***``.

    Channels put tokens anywhere (Slack's and PagerDuty's even in the place of the host), so only web and mail
    addresses, whose host is a machine's name, keep it.
    """
    scheme = _scheme(url)
    if not scheme:
        return "***"
    try:
        parts = urlsplit(f"http://{url.split('://', 1)[1]}")
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return f"{scheme}://***"
    if scheme not in {"json", "jsons", "xml", "xmls", "form", "forms", "http", "https", "mailto", "mailtos"}:
        return f"{scheme}://***"
    if scheme.startswith("mailto") and "." not in host:
        host = "***"  # a mail domain has a dot; without one it may be a password that lost its user
    out = f"{scheme}://" + ("***@" if "@" in parts.netloc else "") + (f"[{host}]" if ":" in host else host)
    out += f":{port}" if port else ""
    out += "/***" if parts.path.strip("/") else ""
    names = [item.partition("=")[0] for item in parts.query.split("&") if item]
    shown = [name if name.lower() in _OPEN_PARAMETERS else "***" for name in names]
    return out + ("?" + "&".join(f"{name}=***" if name != "***" else name for name in shown) if shown else "")


def shown(word: str) -> str:
    """``NAME=URL`` or a URL of the setting, safe to print."""
    name, url = named(word)
    return f"{name}={mask(url)}" if name else mask(url)


def _scheme(url: str) -> str:
    found = re.match(r"([A-Za-z][A-Za-z0-9+.-]{0,31})://", url)
    return found.group(1).lower() if found else ""


def _redacted(text: str, url: str) -> str:
    """A reason from a library, on one line, with every part of the URL that may be a secret taken out of it."""
    rest = url.partition("://")[2] or url
    who, _, where = rest.partition("?")[0].rpartition("@")
    host = re.split(r"[:/]", where, maxsplit=1)[0]
    keep = _OPEN_PARAMETERS | ({host.lower()} if host and host.lower() in mask(url) else set())
    text = text.replace(url, mask(url))
    for raw in (rest, unquote(rest)):
        for piece in sorted(set(re.split(r"[/:@?&=+,#\s]+", raw)), key=len, reverse=True):
            if len(piece) >= 4 and piece.lower() not in keep:
                text = text.replace(piece, "***")
    for piece in (who, *who.split(":"), *unquote(who).split(":")):
        if piece:  # a password of three letters is a secret as well; whole words alone, or nothing could be read
            text = re.sub(rf"(?<!\w){re.escape(piece)}(?!\w)", "***", text)
    return one_line(text, 300)
