"""Files: atomic writes, sha256, and opening what may be gzip or zstd, told by content and never by name."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import stat
import zlib
from pathlib import Path
from typing import Any, BinaryIO, cast

from foxrun.problems import ContractError

GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
BLOCK = 1 << 20


def write_atomic(path: Path | str, data: bytes | str) -> None:
    """Write ``data`` so that a crash at any moment leaves the old file or the new one, never a part.

    Raises OSError (disk full, no such directory, a name that is no regular file's) and then leaves no temporary file
    behind.
    """
    path = Path(path)
    if not replaceable(path):  # a device, a pipe or a directory would be gone for the file that takes its name
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    raw = data.encode() if isinstance(data, str) else data
    temporary = path.with_name(f".{path.name}.{os.urandom(6).hex()}.tmp")
    try:
        with temporary.open("xb") as stream:
            stream.write(raw)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def replaceable(path: Path) -> bool:
    """Whether a file may take this name: nothing has it, or a regular file, or a link to one that is no /dev/stdout."""
    if path.is_symlink() and path.readlink().is_relative_to("/proc"):
        return False
    return path.is_file() or not path.exists()


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable, where the file system can."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    except OSError:
        pass  # some network file systems refuse; the rename is atomic all the same
    finally:
        os.close(descriptor)


def entries_of(folder: Path | str) -> list[os.DirEntry[str]]:
    """What a directory holds, sorted by name and the directory closed again, whatever happens with the entries.

    Raises OSError as os.scandir does.
    """
    with os.scandir(folder) as found:
        return sorted(found, key=lambda entry: entry.name)


def sha256_stream(stream: BinaryIO) -> tuple[str, int]:
    """(hexadecimal sha256, number of bytes) of the rest of a stream."""
    digest = hashlib.sha256()
    buffer = bytearray(BLOCK)
    view = memoryview(buffer)
    size = 0
    while count := cast(io.RawIOBase, stream).readinto(buffer):
        digest.update(view[:count])
        size += count
    return digest.hexdigest(), size


def sha256_file(path: Path | str) -> str:
    """Hexadecimal sha256 of a file as it is stored."""
    with Path(path).open("rb", buffering=0) as stream:
        return sha256_stream(cast(BinaryIO, stream))[0]


def open_input(path: Path | str) -> BinaryIO:
    """Open a file for reading; gzip and zstd are unpacked on the way.

    Raises OSError where it cannot be opened; reading raises ContractError where a compressed file is cut or damaged.
    """
    path = Path(path)
    return unpacked(cast(BinaryIO, path.open("rb", buffering=0)), name=str(path))


def unpacked(raw: BinaryIO, *, name: str) -> BinaryIO:
    """The content of a stream that may be gzip or zstd; ``name`` appears in errors. Closing it closes ``raw``."""
    stream: io.BufferedReader = io.BufferedReader(cast(io.RawIOBase, raw), BLOCK)
    start = stream.peek(4)[:4]
    if start.startswith(GZIP_MAGIC) or start == ZSTD_MAGIC or _is_skippable(start):
        return io.BufferedReader(_Unpacker(stream, name, zstd=not start.startswith(GZIP_MAGIC)), BLOCK)
    return stream


def _is_skippable(start: bytes) -> bool:
    """A zstd file may begin with a frame to be skipped (pzstd writes one)."""
    return len(start) == 4 and 0x50 <= start[0] <= 0x5F and start[1:] == b"\x2a\x4d\x18"


class _Unpacker(io.RawIOBase):
    """Unpacks frame after frame; a stream that ends inside one is an error (zstandard's reader says nothing)."""

    def __init__(self, stream: BinaryIO, name: str, *, zstd: bool) -> None:
        self._stream = stream
        self._name = name
        self._zstd = zstd
        self._frame: Any = None
        self._input = b""
        self._output = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._output:
            made = self._next()
            if made is None:
                return 0
            self._output = memoryview(made)
        count = min(len(buffer), len(self._output))
        buffer[:count] = self._output[:count]
        self._output = self._output[count:]
        return count

    def _next(self) -> bytes | None:
        """Some more bytes, perhaps none yet; None at the end."""
        kind = "zstd" if self._zstd else "gzip"
        if not self._input:
            # zstd gives no bound on the output of one call: small pieces keep a hostile file's memory small
            self._input = self._stream.read(1 << 12 if self._zstd else 1 << 16)
        if not self._input:
            if self._frame is not None:
                raise self._error(f"the {kind} file is cut")
            return None
        if self._frame is None:
            if not self._zstd:
                self._input = self._input.lstrip(b"\0")  # padding between or after members is allowed
                if not self._input:
                    return b""
            self._frame = self._new_frame()
        try:
            if self._zstd:
                made = self._frame.decompress(self._input)
                self._input = b""
            else:
                made = self._frame.decompress(self._input, BLOCK)
                self._input = self._frame.unconsumed_tail
        except Exception as error:
            if isinstance(error, (zlib.error, ValueError)) or type(error).__name__ == "ZstdError":
                raise self._error(f"the {kind} file is damaged ({error})") from None
            raise
        if self._frame.eof:
            self._input = self._frame.unused_data
            self._frame = None
        return cast(bytes, made)

    def _new_frame(self) -> Any:
        if not self._zstd:
            return zlib.decompressobj(wbits=31)
        try:
            import zstandard
        except ImportError:
            raise ContractError(
                "this file is zstd", file=self._name, remedy="pip install zstandard, or unpack it by `zstd -d`"
            ) from None
        return zstandard.ZstdDecompressor().decompressobj()

    def _error(self, what: str) -> ContractError:
        return ContractError(what, file=self._name, remedy="copy or write it again")

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
        super().close()


def read_regular(path: Path | str, start: int = 0, limit: int = BLOCK) -> bytes:
    """At most ``limit`` bytes of a file from ``start`` on (a negative start counts from its end).

    For files that another program makes: a FIFO would never answer and a device never end. Raises OSError for a link
    and for anything else that is not a regular file.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    try:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        return os.pread(descriptor, limit, max(0, about.st_size + start) if start < 0 else start)
    finally:
        os.close(descriptor)
