"""Objects on S3 and whatever speaks like it: the only place that talks to such a server (with its s3_* neighbours).

boto3's own retries are off: they draw random delays and give up after seconds. Ours wait 1, 2, 4, 8, then 16 s, 79 s in
all, so that a minute without the server is survived; every call is idempotent. Uploads carry Content-MD5, which servers
of every make check, where boto3's default (checksums in trailers) is refused by some.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import os
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from foxrun import schema
from foxrun.files import sha256_file
from orchestrator.errors import FoxrunError, InfrastructureError, UsageError
from orchestrator.stores.directory import UnsafePath, checked_input
from orchestrator.stores.s3_trouble import NoSuchKey, Place, code_of, explain

if TYPE_CHECKING:
    from orchestrator.stores.s3_source import S3Source

DELAYS_S = (1, 2, 4, 8, 16, 16, 16, 16)
CONNECT_TIMEOUT_S = 10
READ_TIMEOUT_S = 60  # without one byte; the connection is then made anew
PART = 16 << 20  # a file up to this goes up in one request
MOST_PARTS = 10_000  # S3's limit
PARTS_AT_ONCE = 4
DEFAULT_REGION = "us-east-1"  # what servers other than AWS's own expect unless told otherwise
SCHEME = "s3://"


def parse_url(url: str) -> tuple[str, str]:
    """(bucket, key) of ``s3://bucket/key``; the key may be empty, and has no slash at its ends. Raises UsageError."""
    match = re.fullmatch(r"[sS]3://([^/]+)(?:/(.*))?", url, re.DOTALL)
    if match is None:
        raise UsageError(f"{url!r} names no bucket", remedy="write s3://BUCKET/PREFIX")
    bucket, key = match.group(1), (match.group(2) or "").strip("/")
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,255}", bucket):
        raise UsageError(f"{bucket!r} is no name of a bucket", remedy="write s3://BUCKET/PREFIX")
    return bucket, key


class Unreachable(InfrastructureError):
    """The trouble did not pass within all the tries."""


class S3Store:
    """One bucket. ``say`` hears why a call is tried again; ``delays`` are the seconds between tries.

    ``endpoint`` empty: AWS's own, or what boto3 is told otherwise (AWS_ENDPOINT_URL). ``region`` empty: boto3's.
    ``addressing``: ``path``, ``virtual``, or ``auto``: virtual on AWS, and path elsewhere, since few other servers have
    DNS names for buckets. boto3 finds the credentials: AWS_PROFILE, the environment, a Pod's or a machine's role.
    """

    def __init__(
        self,
        bucket: str,
        *,
        endpoint: str = "",
        region: str = "",
        addressing: str = "auto",
        say: Callable[[str], None] = lambda _: None,
        delays: tuple[float, ...] = DELAYS_S,
        read_timeout_s: float = READ_TIMEOUT_S,
    ) -> None:
        self.bucket = bucket
        self._endpoint, self._region, self._addressing = endpoint, region, addressing
        self._say = say
        self.delays = delays
        self._read_timeout_s = read_timeout_s
        self._client: Any = None
        self._told: dict[str, float] = {}
        self.given_up = threading.Event()  # ends the waiting of parts whose upload has failed or was interrupted
        self.place = Place(endpoint=endpoint, bucket=bucket, region=region, virtual=False, custom=bool(endpoint))

    def with_bucket(self, bucket: str) -> S3Store:
        """The same server and connections, another bucket."""
        other = S3Store(
            bucket, endpoint=self._endpoint, region=self._region, addressing=self._addressing, say=self._say,
            delays=self.delays, read_timeout_s=self._read_timeout_s,
        )  # fmt: skip
        other._client = self.client
        other.place = dataclasses.replace(self.place, bucket=bucket)
        return other

    @property
    def client(self) -> Any:
        """boto3's client, made on first use. Raises InfrastructureError when it cannot be."""
        if self._client is None:
            try:
                self._client = self._connect()
            except FoxrunError:
                raise
            except Exception as error:
                raise explain(error, self.place, self.url("")).error from None
        return self._client

    def _connect(self) -> Any:
        import boto3
        from botocore.config import Config

        if not self.bucket:
            raise UsageError(
                "no bucket is named", remedy="set s3_bucket (FOXRUN_S3_BUCKET), or write s3://BUCKET/PREFIX"
            )
        session = boto3.session.Session()

        def made(style: str) -> Any:
            return session.client(
                "s3",
                endpoint_url=self._endpoint or None,
                region_name=self._region or session.region_name or (DEFAULT_REGION if self._endpoint else None),
                config=Config(
                    signature_version="s3v4",
                    s3={"addressing_style": style},
                    retries={"total_max_attempts": 1, "mode": "standard"},
                    connect_timeout=CONNECT_TIMEOUT_S,
                    read_timeout=self._read_timeout_s,
                    request_checksum_calculation="when_required",
                    response_checksum_validation="when_required",
                ),
            )

        style = {"auto": "path" if self._endpoint else "virtual"}.get(self._addressing, self._addressing)
        client = made(style)
        endpoint = str(client.meta.endpoint_url)
        host = urlsplit(endpoint).hostname or ""
        custom = not re.search(r"\.amazonaws\.com(\.cn)?$", host)
        if custom and self._addressing == "auto" and style != "path":  # AWS_ENDPOINT_URL named another server
            style = "path"
            client = made(style)
        self.place = Place(
            endpoint=endpoint, bucket=self.bucket, region=str(client.meta.region_name or ""),
            virtual=style == "virtual", custom=custom,
        )  # fmt: skip
        return client

    def tell(self, text: str, within_s: float) -> None:
        """Say it, unless it was said within so many seconds: parts that go up side by side meet the same trouble."""
        now = time.monotonic()
        if now - self._told.get(text, -1e9) > within_s / 2:
            self._told[text] = now
            self._say(text)

    def url(self, key: str) -> str:
        """``s3://bucket/key``."""
        return f"{SCHEME}{self.bucket}/{key}".rstrip("/")

    def call(self, operation: str, key: str, **arguments: Any) -> Any:
        """One request on this bucket, tried again while the trouble is passing. Raises InfrastructureError."""
        client = self.client
        patience = Patience(self, key)
        while True:
            try:
                return getattr(client, operation)(Bucket=self.bucket, **arguments)
            except FoxrunError:
                raise
            except Exception as error:
                patience.wait(error)

    # Objects

    def put_input(self, source: Path) -> str:
        """Store a file under its content's sha256 and return the key ``inputs/<sha256>/<file name>``.

        A file that is stored already costs one HEAD. Raises UsageError when it is no readable file, InfrastructureError
        when it cannot be stored or changes meanwhile.
        """
        source = checked_input(source)
        try:
            digest, size = sha256_file(source), source.stat().st_size
        except OSError as error:
            raise UsageError(f"input {str(source)!r} cannot be read: {error.strerror}") from error
        key = f"inputs/{digest}/{source.name}"
        if self.size(key) != size:
            self._upload(source, key, size, digest)
        return key

    def size(self, key: str) -> int | None:
        """The size of an object in bytes; None when it is not there, or when one may not look."""
        try:
            return int(self.call("head_object", key, Key=key)["ContentLength"])
        except NoSuchKey:
            return None
        except Unreachable:
            raise
        except InfrastructureError:
            return None  # a HEAD's answer has no body, so no cause; the request that follows gets one that says why

    def read(self, key: str) -> bytes:
        """A small object, whole. Raises NoSuchKey, InfrastructureError."""
        try:
            with self.source("").open_key(key) as stream:
                return stream.read()
        except FileNotFoundError as error:
            raise NoSuchKey(str(error), remedy="check the key") from None

    def write(self, key: str, data: bytes) -> None:
        """Store bytes under a key, in place of what was there; whole or not at all."""
        md5 = base64.b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode()
        self.call("put_object", key, Key=key, Body=data, ContentMD5=md5)

    def objects(self, prefix: str) -> Iterator[tuple[str, int]]:
        """Every object whose key begins with ``prefix``, with its size in bytes, by one listing (1,000 a request)."""
        token: dict[str, str] = {}
        while True:
            page = self.call("list_objects_v2", prefix, Prefix=prefix, **token)
            for item in page.get("Contents", []):
                yield item["Key"], int(item["Size"])
            if not page.get("IsTruncated"):
                return
            token = {"ContinuationToken": page["NextContinuationToken"]}

    def fetch(self, key: str, target: Path) -> None:
        """Lay the object, or all objects below ``key/``, at ``target``. Raises NoSuchKey when there is neither."""
        found = False
        source = self.source(key)
        for name in source.list():
            if trouble := schema.path_problem(name):
                raise UnsafePath(f"{self.url(key)}: {name!r} {trouble}")
            self._download(f"{key}/{name}", target / name)
            found = True
        if not found:
            self._download(key, target)

    def delete(self, key: str) -> None:
        """Remove the object under a key and all below it, if any."""
        self.call("delete_object", key, Key=key)
        for name, _ in list(self.objects(key.rstrip("/") + "/")):
            self.call("delete_object", name, Key=name)

    def source(self, prefix: str) -> S3Source:
        """The objects below ``prefix/`` as a source of a run."""
        from orchestrator.stores.s3_source import S3Source

        return S3Source(self, prefix)

    def _download(self, key: str, target: Path) -> None:
        beside = target.with_name(f".{target.name}.{os.urandom(6).hex()}.tmp")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with self.source("").open_key(key) as reader, beside.open("xb") as writer:
                shutil.copyfileobj(reader, writer, 1 << 20)
            beside.replace(target)
        except FileNotFoundError as error:
            raise NoSuchKey(str(error), remedy="check the key") from None
        except OSError as error:
            raise InfrastructureError(
                f"{target}: cannot be written: {error.strerror}", remedy="make room, or choose another place"
            ) from None
        finally:
            beside.unlink(missing_ok=True)

    def _upload(self, source: Path, key: str, size: int, digest: str) -> None:
        """In one request, or in parts side by side; what is stored under a digest has that digest."""
        changed = InfrastructureError(f"input {str(source)!r} changed while it was stored", remedy="submit again")
        try:
            with source.open("rb", buffering=0) as stream:
                if size <= PART:
                    data = stream.read(size + 1)
                    if hashlib.sha256(data).hexdigest() != digest:
                        raise changed
                    return self.write(key, data)
                part = max(PART, -(-size // MOST_PARTS))
                upload = str(self.call("create_multipart_upload", key, Key=key)["UploadId"])
                try:
                    parts, read = self._upload_parts(stream, key, upload, part)
                    if read != digest:
                        raise changed
                    arguments = {"Key": key, "UploadId": upload, "MultipartUpload": {"Parts": parts}}
                    self._complete(key, size, arguments)
                except BaseException:
                    self._abort(key, upload)
                    raise
                finally:
                    self.given_up.clear()
        except OSError as error:
            raise UsageError(f"input {str(source)!r} cannot be read: {error.strerror}") from error

    def _upload_parts(self, stream: Any, key: str, upload: str, part: int) -> tuple[list[dict[str, Any]], str]:
        """(number and ETag of each part, sha256 of what was read); a few parts are in memory at a time."""
        self.given_up.clear()
        digest = hashlib.sha256()
        waiting: list[Future[dict[str, Any]]] = []
        done: list[dict[str, Any]] = []

        def put(number: int, data: bytes) -> dict[str, Any]:
            md5 = base64.b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode()
            answer = self.call(
                "upload_part", key, Key=key, UploadId=upload, PartNumber=number, Body=data, ContentMD5=md5
            )
            return {"PartNumber": number, "ETag": answer["ETag"]}

        with ThreadPoolExecutor(PARTS_AT_ONCE) as pool:
            try:
                number = 0
                while data := stream.read(part):
                    digest.update(data)
                    number += 1
                    waiting.append(pool.submit(put, number, data))
                    if len(waiting) >= PARTS_AT_ONCE:
                        done.append(waiting.pop(0).result())
                done += [future.result() for future in waiting]
            except BaseException:
                self.given_up.set()
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        return done, digest.hexdigest()

    def _complete(self, key: str, size: int, arguments: dict[str, Any]) -> None:
        """Make one object of the parts. An answer that was lost leaves no upload to complete, but the object."""
        try:
            self.call("complete_multipart_upload", key, **arguments)
        except InfrastructureError:
            if self.size(key) != size:
                raise

    def _abort(self, key: str, upload: str) -> None:
        """Let the server forget the parts; when it is gone, its own rules clean up later."""
        try:
            self.client.abort_multipart_upload(Bucket=self.bucket, Key=key, UploadId=upload)
        except Exception as error:
            why = code_of(error) or "no answer"
            self._say(f"{self.url(key)}: the parts of a failed upload stay on the server ({why})")


class Patience:
    """Waits between tries of one thing, and gives up at the end of the store's delays."""

    def __init__(self, store: S3Store, key: str) -> None:
        self._store = store
        self._what = store.url(key)
        self._tries = 0

    def wait(self, error: Exception) -> None:
        """Wait before the next try, or raise what the error means when it is final or there was the last try."""
        trouble = explain(error, self._store.place, self._what)
        delays = self._store.delays
        if not trouble.transient:
            raise trouble.error from None
        if self._tries >= len(delays):
            tries = f"{self._tries + 1} tries in {sum(delays):g} s" if delays else "1 try"
            raise Unreachable(f"{trouble.error}; {tries}", remedy=trouble.error.remedy) from None
        delay = delays[self._tries]
        self._tries += 1
        self._store.tell(f"{trouble.error}; trying again in {delay:g} s", delay)
        if self._store.given_up.wait(delay):
            raise trouble.error from None
