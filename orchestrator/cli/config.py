"""``foxrun config``."""

from __future__ import annotations

from typing import Any

import click

from orchestrator.cli import options
from orchestrator.settings import FIELDS, Settings, home_directory


@click.command("config")
@click.argument("name", required=False)
@options.output("json")
def command(name: str | None, fmt: str | None) -> None:
    """Show every setting: value, unit, default, why, and which source won.

    Settings come from foxrun.yaml (the nearest, searched upward from here), then FOXRUN_*, then flags; the last wins.
    Alert URLs hold secrets and are shown by their scheme alone, tokens not at all.

    \b
    foxrun config
    FOXRUN_STEPS=500 foxrun config steps
    """
    from orchestrator.cli.output import print_json, table
    from orchestrator.settings import did_you_mean

    settings = options.current()
    wanted = name.replace("-", "_").removeprefix("FOXRUN_").lower() if name else None
    chosen = [f for f in FIELDS if wanted in (None, f.name)]
    if not chosen:
        raise click.UsageError(f"there is no setting {name!r}{did_you_mean(str(wanted), [f.name for f in FIELDS])}")
    entries = [
        {
            "name": field.name,
            "value": shown(settings, field.name),
            "unit": field.metadata["unit"],
            "default": _plain(field.default),
            "source": settings.sources.get(field.name, "default"),
            "why": field.metadata["why"],
        }
        for field in chosen
    ]
    if fmt == "json":
        return print_json(entries if name is None else entries[0])
    rows = [["NAME", "VALUE", "UNIT", "DEFAULT", "FROM", "WHY"]]
    rows += [[_text(entry[key]) for key in ("name", "value", "unit", "default", "source", "why")] for entry in entries]
    return table(rows)


def shown(settings: Settings, name: str) -> Any:
    """A setting as it may be seen."""
    value = getattr(settings, name)
    from orchestrator.alerts import shown as shown_url
    from orchestrator.printable import without_password

    if next(f for f in FIELDS if f.name == name).metadata["secret"]:
        return [shown_url(item) for item in value] if isinstance(value, tuple) else "***" if value else ""
    if isinstance(value, str) and name != "home":
        return without_password(value)
    return str(home_directory(settings)) if name == "home" else _plain(value)


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _text(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(value) or "-"
    return f"{value:.15g}" if isinstance(value, float) else str(value) or "-"
