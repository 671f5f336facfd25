"""How each kind of setting is read, from YAML or the text of a variable or a flag; ValueError says what it may be."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any


def parse_duration(value: Any) -> float:
    """Seconds of ``90``, ``"90s"``, ``"15m"``, ``"1h30m"`` or ``"2d"``; positive and finite."""
    text = str(value).strip()
    units = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
    if re.fullmatch(r"\d+(\.\d+)?", text):
        seconds = float(text)
    elif re.fullmatch(r"(\d+(\.\d+)?[smhd])+", text):
        seconds = sum(float(n) * units[u] for n, _, u in re.findall(r"(\d+(\.\d+)?)([smhd])", text))
    else:
        raise ValueError("a duration is like 90s, 15m, 1h30m or 2d")
    if not math.isfinite(seconds) or seconds <= 0:
        raise ValueError("a duration is longer than nothing")
    return seconds


def parse_quantity(value: Any) -> str:
    """An amount as Kubernetes writes it (``2``, ``1.5``, ``500m``, ``16Gi``); more than nothing."""
    text = "" if isinstance(value, bool) else str(value).strip()
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(m|k|Ki|M|Mi|G|Gi|T|Ti)?", text)
    if match is None or float(match[1]) == 0:
        raise ValueError("an amount is like 2, 500m (half a CPU) or 16Gi (memory)")
    return text


def parse_toleration(value: Any) -> str:
    """A taint that pods accept, as kubectl writes it: ``KEY``, ``KEY:EFFECT``, ``KEY=VALUE:EFFECT``.

    A toleration as Kubernetes has it, an object, is turned into that.
    """
    if isinstance(value, Mapping):
        strange = set(value) - {"key", "operator", "value", "effect"}
        equal = value.get("operator", "Equal" if "value" in value else "Exists") == "Equal"
        if strange or not value.get("key"):
            raise ValueError("a toleration has a key, and may have operator, value and effect")
        value = str(value["key"]) + (f"={value.get('value') or ''}" if equal else "") + f":{value.get('effect') or ''}"
    text = str(value).strip().removesuffix(":")
    if not re.fullmatch(r"[^\s:=]+(=[^\s:=]*)?(:(NoSchedule|PreferNoSchedule|NoExecute))?", text):
        raise ValueError("a toleration is KEY, KEY:EFFECT or KEY=VALUE:EFFECT; effects are as of `kubectl taint`")
    return text


def parse_label(value: Any) -> str:
    """``KEY=VALUE`` of a node's label."""
    text = str(value).strip()
    if not re.fullmatch(r"[^\s=]+=[^\s=]*", text):
        raise ValueError("a label is KEY=VALUE")
    return text


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not re.fullmatch(r"\d+", str(value).strip()):
        raise ValueError("it is a whole number, 0 or more")
    return int(str(value))


def _positive(value: Any) -> int:
    if _whole(value) < 1:
        raise ValueError("it is a whole number, 1 or more")
    return _whole(value)


def _mode(value: Any) -> int:
    if _whole(value) > 3:
        raise ValueError("modes are 0 fast, 1 pedantic, 2 control, 3 fast and exact")
    return _whole(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("it is a text")
    return value.strip()  # of a Secret made of a file, the last line break is there


def _folder(value: Any) -> str:
    text = _text(value)
    if not text or ".." in text.split("/"):
        raise ValueError("it is a folder of the repository, by its path in it")
    return text


def _words(value: Any) -> str:
    import shlex

    text = _text(value)
    try:
        shlex.split(text)
    except ValueError as error:
        raise ValueError(f"a shell could not part it into words: {error}") from None
    return text


def _flag(value: Any) -> bool:
    words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    if str(value).strip().lower() not in words:
        raise ValueError("it is true or false")
    return words[str(value).strip().lower()]


def _choice(what: str, *words: str) -> Callable[[Any], str]:
    def parse(value: Any) -> str:
        if value not in words:
            raise ValueError(f"{what} {', '.join(words[:-1])} {'and' if what.endswith('are') else 'or'} {words[-1]}")
        return str(value)

    return parse


def _urls(value: Any) -> tuple[str, ...]:
    items = value.split() if isinstance(value, str) else value
    if isinstance(items, Mapping):
        if not all(re.fullmatch(r"[A-Za-z0-9][\w.-]*", str(name)) for name in items):
            raise ValueError("a channel's name is made of letters, digits, dots and dashes")
        texts = all(isinstance(url, str) and url.strip() for url in items.values())
        items = [f"{name}={url.strip()}" for name, url in items.items()] if texts else None
    if not isinstance(items, list) or not all(isinstance(item, str) and item.strip() for item in items):
        raise ValueError("alerts are apprise URLs: names with URLs, a list, or parted by spaces")
    return tuple(item.strip() for item in items)


def _pathspecs(value: Any) -> tuple[str, ...]:
    """A list, as paths may hold blanks and commas; or a text parted by blanks."""
    items = value.split() if isinstance(value, str) else value
    if not isinstance(items, list | tuple) or not all(isinstance(i, str) and i and i.isprintable() for i in items):
        raise ValueError("they are a list of pathspecs, or parted by spaces")
    return tuple(items)


def _several(one: Callable[[Any], str]) -> Callable[[Any], tuple[str, ...]]:
    """A list, a mapping of keys to values (for what is KEY=VALUE), or a text parted by commas or spaces."""

    def parse(value: Any) -> tuple[str, ...]:
        if isinstance(value, str):
            value = [item for item in re.split(r"[,\s]+", value) if item]
        if isinstance(value, Mapping):
            value = [f"{key}={item}" for key, item in value.items()]
        if not isinstance(value, list | tuple):
            raise ValueError("it is a list, or parted by commas")
        return tuple(dict.fromkeys(one(item) for item in value))

    return parse


def _name(value: Any) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[^\s=,]+", value.strip()):
        raise ValueError("it is a name")
    return value.strip()


def _endpoint(value: Any) -> str:
    text = str(value).strip().rstrip("/")
    match = re.fullmatch(r"https?://([^/?#\s]+)", text)
    if text and match is None:
        raise ValueError("a server is http://HOST[:PORT] or https://HOST[:PORT], with nothing behind it")
    if match is not None and "@" in match.group(1):
        raise ValueError("it must hold no password; credentials come from AWS_PROFILE or AWS_ACCESS_KEY_ID")
    return text


def _api(value: Any) -> str:
    text = _text(value).strip().rstrip("/")
    if text and not re.fullmatch(r"https?://[^/?#\s@]+(/[^?#\s]*)?", text):
        raise ValueError("an API is https://HOST/api/v3, https://HOST/api/v4 or https://api.NAME.ghe.com")
    return text


def _rules(value: Any) -> tuple[str, ...]:
    from orchestrator.alert_rules import rule_texts

    return rule_texts(value)


def _git_url(value: Any) -> str:
    text = _text(value).strip()
    if re.match(r"https?://[^/@]*:[^/@]*@", text):
        raise ValueError("it must hold no password; git_secret names a Secret that has it")
    return text


PARSERS: Mapping[str, Callable[[Any], Any]] = {
    "engine": _choice("engines are", "local", "argo"),
    "flag": _flag,
    "text": _text,
    "words": _words,
    "folder": _folder,
    "count": _whole,
    "positive": _positive,
    "mode": _mode,
    "duration": parse_duration,
    "urls": _urls,
    "endpoint": _endpoint,
    "git_url": _git_url,
    "addressing": _choice("it is", "auto", "path", "virtual"),
    "pull_policy": _choice("it is", "IfNotPresent", "Always", "Never"),
    "digest": _choice("it is", "auto", "require", "off"),
    "code": _choice("it is", "image", "git"),
    "quantity": parse_quantity,
    "limit": lambda value: parse_quantity(value) if value not in ("", None) else "",
    "tolerations": _several(parse_toleration),
    "labels": _several(parse_label),
    "names": _several(_name),
    "kinds": _several(_choice("kinds of workflow are", "train", "regression-pair", "ci-gate", "nightly", "seed-sweep")),
    "name": _name,
    "api": _api,
    "rules": _rules,
    "pathspecs": _pathspecs,
}
