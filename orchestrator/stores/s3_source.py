"""A run on S3, as foxrun.open_run takes it: one listing, whole objects as streams, parts of them as ranged GETs.

A transfer that is cut or stops is taken up again where it ended, of the same object: another ETag is an error, never a
mixture of two.
"""

from __future__ import annotations

import contextlib
import io
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from foxrun import schema
from foxrun.problems import ContractError
from orchestrator.errors import InfrastructureError
from orchestrator.stores.s3_trouble import NoSuchKey, ObjectChanged

if TYPE_CHECKING:
    from orchestrator.stores.s3 import Patience, S3Store

BLOCK = 1 << 20
SMALL = 4 << 20  # a manifest, leaves.json and a summary are looked at more than once, and read once


class S3Source:
    """The objects below a prefix, as they were when first listed. Raises InfrastructureError for trouble on the way."""

    def __init__(self, store: S3Store, prefix: str) -> None:
        self._store = store
        self._prefix = prefix.strip("/") + "/" if prefix.strip("/") else ""
        self._listing: dict[str, int] | None = None
        self._kept: dict[str, bytes] = {}
        self.label = store.url(self._prefix)

    def list(self) -> dict[str, int]:
        """Every object below the prefix with its size, by name; asked of the server once."""
        if self._listing is None:
            start = len(self._prefix)
            found = {key[start:]: size for key, size in self._store.objects(self._prefix)}
            # A "folder" made by a console is an object whose name ends in a slash.
            self._listing = {name: size for name, size in sorted(found.items()) if name and not name.endswith("/")}
        return self._listing

    def open(self, name: str) -> BinaryIO:
        """An object's bytes as a stream. FileNotFoundError, perhaps only while reading, when it is gone."""
        size = self.list().get(name)
        if name in self._kept:
            return io.BytesIO(self._kept[name])
        stream = self.open_key(self._prefix + self._checked(name), size)
        if size is None or size + sum(map(len, self._kept.values())) > SMALL:
            return stream
        with stream:
            self._kept[name] = stream.read()
        return io.BytesIO(self._kept[name])

    def open_key(self, key: str, size: int | None = None) -> BinaryIO:
        """The same by the whole key, listed or not."""
        return cast(BinaryIO, io.BufferedReader(ObjectStream(self._store, key, size=size), BLOCK))

    def read_range(self, name: str, start: int, end: int) -> bytes:
        """Bytes start..end-1, by one ranged GET; fewer at the end. FileNotFoundError when the object is gone."""
        size = self.list().get(name)
        end = end if size is None else min(end, size)
        if end <= start:
            return b""
        with ObjectStream(self._store, self._prefix + self._checked(name), start=start, end=end) as stream:
            pieces = []
            while piece := stream.read(BLOCK):
                pieces.append(piece)
            return b"".join(pieces)

    def _checked(self, name: str) -> str:
        if trouble := schema.path_problem(name):
            raise ContractError(f"{name!r} {trouble}", file=self.label, remedy="name a file of the run directory")
        return name


class ObjectStream(io.RawIOBase):
    """Bytes start..end-1 of one object (all of it by default), read once from front to back."""

    def __init__(
        self, store: S3Store, key: str, *, start: int = 0, end: int | None = None, size: int | None = None
    ) -> None:
        self._store = store
        self._key = key
        self._place = start
        self._ranged = end is not None
        self._end = end if end is not None else size
        self._etag = ""
        self._body: Any = None

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """The next bytes, from the server or from where the transfer was cut."""
        from orchestrator.stores.s3 import Patience

        view = memoryview(buffer).cast("B")
        if self._end is not None and self._place >= self._end:
            return 0
        patience: Patience | None = None
        while True:
            try:
                if self._body is None:
                    self._open()
                data = self._body.read(len(view))
                if not data and self._end is not None and self._place < self._end:
                    raise EOFError
            except FileNotFoundError:
                raise
            except Exception as error:
                self._drop()
                patience = patience or Patience(self._store, self._key)
                patience.wait(ConnectionResetError() if isinstance(error, EOFError) else error)
                continue
            view[: len(data)] = data
            self._place += len(data)
            return len(data)

    def _open(self) -> None:
        """Ask for what is left, and only of the object that the reading began with."""
        arguments: dict[str, Any] = {}
        if self._place or self._ranged:
            last = "" if self._end is None else str(self._end - 1)
            arguments["Range"] = f"bytes={self._place}-{last}"
        if self._etag:
            arguments["IfMatch"] = self._etag
        what = self._store.url(self._key)
        try:
            answer = self._store.call("get_object", self._key, Key=self._key, **arguments)
        except NoSuchKey:
            raise FileNotFoundError(f"{what}: nothing is stored there") from None
        self._body = answer["Body"]
        whole = int(str(answer.get("ContentRange", "")).rpartition("/")[2] or answer["ContentLength"])
        if self._end is None:
            self._end = whole
        elif whole < self._end or (whole > self._end and not self._ranged):
            raise ObjectChanged(f"{what}: it was replaced since it was listed", remedy="run the command again")
        if "Range" in arguments and "ContentRange" not in answer:
            raise InfrastructureError(
                f"{what}: the server ignores the Range header", remedy="see whether a proxy removes it"
            )
        self._etag = str(answer.get("ETag") or "")

    def _drop(self) -> None:
        if self._body is not None:
            with contextlib.suppress(Exception):
                self._body.close()
            self._body = None

    def close(self) -> None:
        """Let go of the connection."""
        self._drop()
        super().close()
