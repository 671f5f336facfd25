"""Where runs and metric files are named: a path on this machine, or s3://BUCKET/PREFIX."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from foxrun.files import unpacked
from foxrun.sources import Source
from orchestrator.errors import UsageError

if TYPE_CHECKING:
    from orchestrator.settings import Settings
    from orchestrator.stores.s3 import S3Store  # boto3 and its kin, which a comparison of directories does not need

SCHEME = "s3://"
DIRECTORY, FILE, NOTHING = "directory", "file", "nothing"
# Two runs below one place: of a pair's workflow, of a gate, as people name them, and of a workflow whose gate failed.
_PAIRS = (("leg-a", "leg-b"), ("twin1", "twin2"), ("a", "b"), ("gate/twin1", "gate/twin2"))
_PACKED = (".tgz", ".tar.gz", ".tar", ".zip")


@dataclass(frozen=True, kw_only=True)
class Found:
    """What a name stands for. ``run``: what foxrun.open_run takes; ``open``: the unpacked content of a file."""

    label: str
    kind: str
    remote: bool
    run: Path | Source
    open: Callable[[], BinaryIO]


def is_remote(where: Path | str) -> bool:
    """Whether this is an address on S3 and no path."""
    return isinstance(where, str) and where[: len(SCHEME)].lower() == SCHEME


class Places:
    """Finds what people name. ``say`` hears why a request to S3 is made again."""

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        say: Callable[[str], None] = lambda _: None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._given = settings
        self._say = say
        self._environ = os.environ if environ is None else environ
        self._store: S3Store | None = None

    def store(self, bucket: str = "") -> S3Store:
        """The bucket of that name, or the one that the settings name, on the server that the settings name."""
        from orchestrator.settings import Settings
        from orchestrator.stores.s3 import S3Store

        settings = self._given or Settings()
        if self._store is None:
            self._store = S3Store(
                bucket or settings.s3_bucket,
                endpoint=settings.s3_endpoint,
                # boto3 reads AWS_DEFAULT_REGION alone; EKS and Lambda set AWS_REGION.
                region=settings.s3_region
                or ("" if "AWS_DEFAULT_REGION" in self._environ else self._environ.get("AWS_REGION", "")),
                addressing=settings.s3_addressing,
                say=self._say,
            )
        wanted = bucket or settings.s3_bucket
        return self._store if self._store.bucket == wanted else self._store.with_bucket(wanted)

    def find(self, where: Path | str) -> Found:
        """What is there; on S3 by one listing, and one HEAD where nothing lies below the name.

        Raises UsageError for an address that can hold no run, InfrastructureError when S3 cannot be asked.
        """
        if not is_remote(where):
            path = Path(where)
            kind = DIRECTORY if path.is_dir() else FILE if path.exists() else NOTHING
            return Found(label=str(path), kind=kind, remote=False, run=path, open=lambda: _open(path))
        from orchestrator.stores.s3 import parse_url

        bucket, key = parse_url(str(where))
        store = self.store(bucket)
        if not key:
            raise UsageError(f"{where} is a whole bucket", remedy=f"name what lies in it: {SCHEME}{bucket}/PREFIX")
        source = store.source(key)
        kind = DIRECTORY if source.list() else FILE if store.size(key) is not None else NOTHING
        if kind == FILE and key.endswith(_PACKED):
            raise UsageError(
                f"{where} is a packed artifact, of which no part can be read alone",
                remedy="let Argo store it unpacked (archive: none: {}), or fetch and unpack it first",
            )
        return Found(
            label=store.url(key),
            kind=kind,
            remote=True,
            run=cast(Source, source),
            open=lambda: unpacked(source.open_key(key), name=store.url(key)),
        )

    def pair_below(self, where: Path | str) -> tuple[str, str] | None:
        """The two runs that lie below a place, as places themselves; None where there are no two. Raises as `find`."""
        if not is_remote(where):
            path = Path(where)
            sides = next(((path / a, path / b) for a, b in _PAIRS if (path / a).is_dir() and (path / b).is_dir()), None)
            return None if sides is None else (str(_of_one_pod(sides[0])), str(_of_one_pod(sides[1])))
        address = str(where).rstrip("/")
        found = self.find(address if is_remote(address) else where)  # of s3:// itself nothing is stripped
        names = found.run.list() if found.kind == DIRECTORY and not isinstance(found.run, Path) else {}
        for a, b in _PAIRS:
            if all(any(name.startswith(f"{side}/") for name in names) for side in (a, b)):
                return f"{address}/{a}", f"{address}/{b}"
        return None


def _of_one_pod(leg: Path) -> Path:
    """What the only pod of a leg left there, as the directory store keeps it; ``leg`` itself elsewhere."""
    inside = sorted(leg.iterdir())
    return inside[0] if len(inside) == 1 and inside[0].is_dir() else leg


def _open(path: Path) -> BinaryIO:
    from foxrun.files import open_input

    return open_input(path)
