"""TrainerConfig: every parameter with meaning, unit and default; strict parsing of ``-p key=value``."""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any

from trainer.errors import UsageError

# Where a parameter says where files lie or when they are written, not what is computed: two runs that differ
# here alone are the same run.
NOT_IN_CONFIG = ("resume", "checkpoint_at", "fingerprints")


def _p(default: Any, meaning: str, unit: str = "", *, low: float | None = None, choices: tuple[str, ...] = ()) -> Any:
    return field(default=default, metadata={"meaning": meaning, "unit": unit, "low": low, "choices": choices})


@dataclass(frozen=True, kw_only=True)
class TrainerConfig:
    """Everything that decides what is computed, besides seed, mode, steps and data (which have flags)."""

    envs: int = _p(128, "environments that replay the book side by side", "environments", low=1)
    window: int = _p(32, "rows of the book that one observation holds", "rows", low=2)
    width: int = _p(128, "features of encoder and heads", "features", low=4)
    state: int = _p(16, "state of the selective scan for each channel", "values", low=1)
    head_dim: int = _p(64, "channels of one head of the scan; at most 2 * width, which it divides", "channels", low=1)
    batch: int = _p(0, "transitions of one learning batch; 0: as many as environments", "transitions", low=0)
    capacity: int = _p(131072, "transitions the replay holds, in whole steps of all environments", "transitions", low=1)
    lr: float = _p(3e-4, "learning rate of AdamW", "", low=0.0)
    beta1: float = _p(0.9, "decay of AdamW's first moment", "", low=0.0)
    beta2: float = _p(0.999, "decay of AdamW's second moment", "", low=0.0)
    adam_epsilon: float = _p(1e-8, "added to the root of AdamW's second moment", "", low=0.0)
    weight_decay: float = _p(0.01, "AdamW's decoupled decay, of matrices alone", "per step and lr", low=0.0)
    grad_clip: float = _p(10.0, "largest global norm of the gradient", "", low=0.0)
    gamma: float = _p(0.99, "discount of one step", "", low=0.0)
    v_min: float = _p(-10.0, "lowest atom of the return distribution", "reward")
    v_max: float = _p(10.0, "highest atom of the return distribution", "reward")
    target_tau: float = _p(0.005, "part of the online weights that enters the target each step", "", low=0.0)
    pi_coefficient: float = _p(1.0, "weight of the policy loss", "", low=0.0)
    v_coefficient: float = _p(0.5, "weight of the value loss", "", low=0.0)
    entropy_coefficient: float = _p(0.01, "weight of the policy's entropy", "", low=0.0)
    advantage_scale: float = _p(1.0, "advantage that multiplies a policy weight by e", "reward", low=1e-6)
    epsilon: float = _p(0.05, "share of training actions drawn uniformly", "", low=0.0)
    eval_temperature: float = _p(
        1.0, "spread of evaluation's draws from the policy; 0: always the likeliest", "", low=0.0
    )
    priority_alpha: float = _p(0.6, "exponent of the replay's priorities", "", low=0.0)
    priority_beta: float = _p(0.4, "exponent of the importance weights", "", low=0.0)
    priority_floor: float = _p(1e-3, "added to each priority before its exponent", "", low=1e-9)
    win_rate_decay: float = _p(0.99, "decay of the win-rate average, each step", "", low=0.0)
    rows_per_step: int = _p(1, "rows of the book that pass in one step", "rows", low=1)
    chunk_rows: int = _p(65536, "rows of the book that lie on the device at once", "rows", low=64)
    chunk_steps: int = _p(1000, "steps until the next chunk of the book is loaded", "steps", low=1)
    book_rows: int = _p(10000, "rows of the generated book where no data is given", "rows", low=64)
    book_seed: int = _p(1, "seed of the generated book", "", low=0)
    instrument: int = _p(0, "instrument of the data to trade; 0: the first", "instrument id", low=0)
    threads: int = _p(1, "CPU threads of one operation; never the machine's count", "threads", low=1)
    device: str = _p("auto", "where to run; auto: cuda where there is one", "", choices=("auto", "cpu", "cuda"))
    fault: str = _p("", "a fault to inject, NAME[@leg][:step]; see trainer/faults.py")
    fingerprints: str = _p(
        "auto",
        "take them; auto: in every mode but 0. Off is for measuring what they cost",
        choices=("auto", "on", "off"),
    )
    checkpoint_at: int = _p(-1, "write a checkpoint before this step; -1: none", "step", low=-1)
    resume: str = _p("", "go on from this checkpoint")

    def takes_fingerprints(self, mode: int) -> bool:
        """Whether a run in ``mode`` takes fingerprints."""
        return mode != 0 if self.fingerprints == "auto" else self.fingerprints == "on"

    @property
    def batch_size(self) -> int:
        """Transitions of one learning batch."""
        return self.batch or self.envs

    @property
    def scan_head_dim(self) -> int:
        """Channels of one head: ``head_dim``, or all where the block is narrower."""
        return min(self.head_dim, 2 * self.width)


def check(config: TrainerConfig) -> None:
    """Refuse combinations that cannot run."""
    if (2 * config.width) % config.scan_head_dim:
        raise UsageError(
            f"head_dim={config.head_dim} does not divide 2 * width = {2 * config.width}: choose a divisor, such as "
            f"-p head_dim={math.gcd(config.head_dim, 2 * config.width)}"
        )
    if config.capacity < max(config.envs, config.batch_size):
        raise UsageError(
            f"capacity={config.capacity} is below the {max(config.envs, config.batch_size)} transitions of one step: "
            f"raise it, or lower envs or batch"
        )
    if config.v_min >= config.v_max:
        raise UsageError(f"v_min={config.v_min} must be below v_max={config.v_max}")
    for name in ("beta1", "beta2", "gamma", "target_tau", "epsilon", "win_rate_decay"):
        if not 0.0 <= getattr(config, name) <= 1.0:
            raise UsageError(f"{name}={getattr(config, name)} is not between 0 and 1")
    needed = config.window + 2 * config.rows_per_step + 1
    for name in ("chunk_rows", "book_rows"):
        if getattr(config, name) < needed:
            raise UsageError(f"{name}={getattr(config, name)} is below the {needed} rows that one window needs")


_INTEGER = re.compile(r"[+-]?[0-9]{1,18}\Z", re.ASCII)
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?\Z", re.ASCII)


def _shown(text: str) -> str:
    quoted = json.dumps(text, ensure_ascii=False)
    return quoted if len(quoted) <= 80 else quoted[:77] + '..."'


def parse_value(name: str, text: str, default: Any, metadata: Mapping[str, Any]) -> Any:
    """One value as the default's type; UsageError says what was expected."""
    value: Any = text
    if isinstance(default, bool):
        if text not in ("true", "false"):
            raise UsageError(f"{name}={_shown(text)}: expected true or false")
        value = text == "true"
    elif isinstance(default, int):
        if not _INTEGER.match(text):
            raise UsageError(f"{name}={_shown(text)}: expected a whole number, such as {default}")
        value = int(text)
    elif isinstance(default, float):
        if not _NUMBER.match(text) or not math.isfinite(float(text)):
            raise UsageError(f"{name}={_shown(text)}: expected a finite number, such as {default}")
        value = float(text)
    choices = metadata.get("choices") or ()
    if choices and value not in choices:
        raise UsageError(f"{name}={_shown(text)}: expected one of {', '.join(choices)}")
    low = metadata.get("low")
    if low is not None and value < low:
        raise UsageError(f"{name}={_shown(text)}: at least {low}")
    return value


def parameter_fields(*classes: type) -> dict[str, Field[Any]]:
    """Every parameter of the given dataclasses by name; a name of an earlier class hides a later one's."""
    known: dict[str, Field[Any]] = {}
    for cls in classes:
        for item in fields(cls):
            known.setdefault(item.name, item)
    return known


def split_pairs(pairs: Iterable[str]) -> dict[str, str]:
    """``key=value`` texts to a mapping; the last of a repeated key wins."""
    result = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise UsageError(f"-p {_shown(pair)}: expected key=value")
        result[name] = value
    return result


def parse_object(text: str) -> dict[str, str]:
    """``--parameters``: a JSON object of strings (numbers and booleans are taken as written)."""
    try:
        value = json.loads(text)
    except ValueError as error:
        raise UsageError(f"--parameters {_shown(text)} is not JSON ({error})") from None
    if not isinstance(value, dict):
        raise UsageError(f"--parameters {_shown(text)}: expected a JSON object of strings")
    result = {}
    for key, item in value.items():
        if isinstance(item, bool):
            item = "true" if item else "false"
        elif isinstance(item, int | float):
            item = repr(item)
        if not isinstance(item, str):
            raise UsageError(f"--parameters: the value of {_shown(key)} is not a string")
        result[key] = item
    return result


def build(parameters: Mapping[str, str], *classes: type) -> list[Any]:
    """Instances of ``classes`` (TrainerConfig first) from texts; unknown names are refused with the nearest."""
    known = parameter_fields(*classes)
    values: dict[str, Any] = {}
    for name in sorted(parameters):
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(sorted(known))}"
            raise UsageError(f"unknown parameter {_shown(name)}; {hint}")
        item = known[name]
        default = item.default if item.default is not MISSING else ""
        values[name] = parse_value(name, parameters[name], default, item.metadata)
    made = []
    for cls in classes:
        own = {item.name for item in fields(cls)}
        made.append(cls(**{name: value for name, value in values.items() if name in own}))
    return made


def as_mapping(*configs: Any) -> dict[str, Any]:
    """The config as the manifest records it: every parameter that decides what is computed, sorted by name."""
    merged: dict[str, Any] = {}
    for config in configs:
        for item in fields(config):
            if item.name not in NOT_IN_CONFIG:
                merged.setdefault(item.name, getattr(config, item.name))
    return dict(sorted(merged.items()))
