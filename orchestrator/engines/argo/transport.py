"""HTTP to a cluster: JSON in and out, streams of lines, and every failure as an error of one of a few kinds.

Kinds that are worth another try (unreachable, overloaded, restarting) are tried again within `PATIENCE_S`; a refused
token is read anew once a request.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator, Mapping
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import quote, urlencode

from orchestrator.engines.argo.credentials import Access, Credentials
from orchestrator.errors import InfrastructureError, UsageError

CONNECT_S = 5.0
READ_S = 30.0
PATIENCE_S = 15.0
FIRST_PAUSE_S = 0.25
LONGEST_PAUSE_S = 8.0
# The API server takes 3 MiB; etcd behind it 1.5 MiB, which is the limit that Workflows meet.
_TOO_LARGE = ("request is too large", "entity too large", "trying to send message larger than")
# What argo-server says when the API server behind it restarts.
_PASSES = ("connection refused", "connection reset", "EOF", "timeout", "etcdserver", "TLS handshake", "try again")


class Unavailable(InfrastructureError):
    """The server does not answer, or says that it cannot now."""


class Refused(InfrastructureError):
    """401: the credentials are not, or no more, accepted."""


class Forbidden(InfrastructureError):
    """403: we are known and may not do this."""

    retryable = False


class NotFound(InfrastructureError):
    """404."""

    retryable = False


class Conflict(InfrastructureError):
    """409: it exists already, or was changed meanwhile."""


class Gone(InfrastructureError):
    """410: the resource version is too old to watch from."""


class Transport:
    """One server. Not for several threads at once but for streams, which are."""

    def __init__(self, credentials: Credentials, *, patience_s: float = PATIENCE_S) -> None:
        self.credentials = credentials
        self.patience_s = patience_s
        self._access: Access | None = None

    @property
    def access(self) -> Access:
        """Read when it is first needed."""
        if self._access is None:
            self._access = self.credentials.load()
        return self._access

    def reload(self) -> None:
        """Read the credentials anew at the next request."""
        self._access = None

    def json(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = "application/json",
        patient: bool = True,
    ) -> dict[str, Any]:
        """One request and its JSON answer; ``patient``: try again for a while what may pass."""
        data = None if body is None else json.dumps(body, ensure_ascii=False).encode()
        give_up_at = time.monotonic() + (self.patience_s if patient else 0.0)
        pause = FIRST_PAUSE_S
        while True:
            try:
                response = self._open(method, path, query, data, {"Content-Type": content_type}, READ_S, stream=False)
                return _object(response.data, path)
            except Unavailable:
                if time.monotonic() + pause > give_up_at:
                    raise
                time.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE_S)

    def clock_ahead_s(self, path: str) -> float:
        """Seconds that the server's clock is surely ahead of ours (behind: negative); answers say whole seconds."""
        before = time.time()
        response = self._open("GET", path, None, None, {}, READ_S, stream=False)
        return ahead_s(str(response.headers.get("Date") or ""), before, time.time())

    def chunks(self, path: str, *, query: Mapping[str, str] | None = None) -> Iterator[bytes]:
        """The body of a GET in chunks. Raises Unavailable when it is cut."""
        response = self._open("GET", path, query, None, {}, READ_S, stream=True)
        try:
            while chunk := _guarded(lambda: response.read(1 << 16), self.access.host):
                yield chunk
        finally:
            response.close()

    def lines(
        self, path: str, *, query: Mapping[str, str], silence_s: float, headers: Mapping[str, str] | None = None
    ) -> Iterator[bytes]:
        """Lines of a stream as they come, without their ends; a last line that has none as well.

        Ends when the server ends it. Raises Unavailable when it is cut, or silent for ``silence_s``.
        """
        response = self._open("GET", path, query, None, headers or {}, silence_s, stream=True)
        partial: list[bytes] = []
        try:
            while chunk := _guarded(lambda: response.read1(1 << 16), self.access.host):
                head, *rest = chunk.split(b"\n")
                partial.append(head)
                if rest:
                    yield b"".join(partial)
                    yield from rest[:-1]
                    partial = [rest[-1]]
            if any(partial):
                yield b"".join(partial)
        finally:
            response.close()

    def _open(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        data: bytes | None,
        headers: Mapping[str, str],
        read_s: float,
        *,
        stream: bool,
    ) -> Any:
        """The response, whose status is good; a refused token is read anew once."""
        for last in (False, True):
            access = self.access
            response = self._send(access, method, path, query, data, headers, read_s, stream)
            if response.status < 300:
                return response
            body = _guarded(lambda: response.read() if stream else response.data, access.host)  # noqa: B023
            response.close()
            if response.status == 401:
                self.reload()
                if not last:
                    continue
            raise _error(response.status, body, f"{method} {access.host}{path}", response.headers)
        raise AssertionError("unreachable")

    def _send(
        self,
        access: Access,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        data: bytes | None,
        headers: Mapping[str, str],
        read_s: float,
        stream: bool,
    ) -> Any:
        from urllib3 import Timeout

        url = access.host + path + ("?" + urlencode(query) if query else "")
        sent = {"Accept": "application/json", "User-Agent": "foxrun", **headers, **access.headers()}
        return _guarded(
            lambda: access.pool.request(
                method,
                url,
                body=data,
                headers=sent,
                timeout=Timeout(connect=CONNECT_S, read=read_s),
                retries=False,
                redirect=False,
                preload_content=not stream,
            ),
            access.host,
        )


def ahead_s(date: str, before: float, after: float) -> float:
    """What a Date header says of the clock behind it, when the request was sent and answered at these Unix times."""
    try:
        said = parsedate_to_datetime(date).timestamp()
    except ValueError:
        return 0.0
    return max(0.0, said - after) or min(0.0, said + 1 - before)


def segment(text: str) -> str:
    """Text as one segment of a path."""
    return quote(text, safe="")


def _guarded(call: Any, host: str) -> Any:
    """What ``call`` returns; every failure of connection or TLS as one of our errors."""
    from urllib3 import exceptions

    try:
        return call()
    except exceptions.SSLError as error:
        text = str(error)
        if "WRONG_VERSION_NUMBER" in text or "record layer failure" in text:
            raise UsageError(
                f"{host} does not speak TLS", remedy="write its address with http:// (argo: --secure=false)"
            ) from None
        if "CERTIFICATE_VERIFY_FAILED" in text or "doesn't match" in text:
            raise UsageError(
                f"the certificate of {host} is not trusted: {_reason(error)}",
                remedy="give the right authority in the kubeconfig; argo_verify: false trusts any argo-server",
            ) from None
        # A proxy in front of a server that restarts accepts, and ends in the middle of the handshake.
        raise Unavailable(
            f"{host} broke off: {_reason(error)}", remedy="check that it runs and can be reached; foxrun doctor"
        ) from None
    except exceptions.NameResolutionError:
        raise Unavailable(f"there is no host of the name in {host}", remedy="check the address and the DNS") from None
    except exceptions.LocationParseError as error:
        raise UsageError(f"{host} is no address: {_reason(error)}", remedy="write https://HOST:PORT") from None
    except (exceptions.HTTPError, OSError) as error:
        raise Unavailable(
            f"{host} does not answer: {_reason(error)}", remedy="check that it runs and can be reached; foxrun doctor"
        ) from None


def _reason(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return text.rsplit(": ", 1)[-1] if "object at 0x" in text else text or type(error).__name__


def _object(data: bytes, path: str) -> dict[str, Any]:
    try:
        value = json.loads(data or b"{}")
    except ValueError:
        raise InfrastructureError(
            f"the answer to {path} is no JSON: {data[:80]!r}", remedy="check that the address is an API and no web page"
        ) from None
    return value if isinstance(value, dict) else {"value": value}


def _error(status: int, body: bytes, what: str, headers: Mapping[str, str]) -> InfrastructureError | UsageError:
    """The error of an HTTP status; the server's own words are kept."""
    said: Any = None
    message = body.decode("utf-8", "replace")
    with contextlib.suppress(ValueError):
        said = json.loads(body)
        if isinstance(said, dict) and isinstance(said.get("error"), dict):  # the first message of a stream
            said = said["error"]
        if isinstance(said, dict):
            message = str(said.get("message") or said.get("error") or message)
    message = " ".join(message.split())[:600] or f"HTTP {status}"
    if status == 401:
        return Refused(
            f"the credentials are refused: {message} ({what})",
            remedy="log in again: the token has expired or belongs to another cluster (ARGO_TOKEN starts with Bearer)",
        )
    if status == 403:
        return Forbidden(
            f"not allowed: {message}", remedy="foxrun doctor names the missing permission; ask for a Role that has it"
        )
    if status == 404:
        return NotFound(f"{message} ({what})", remedy="check namespace, name and that Argo Workflows is installed")
    if status == 409:
        return Conflict(message)
    if status == 410:
        return Gone(message)
    if status == 413 or any(words in message for words in _TOO_LARGE):
        return UsageError(
            f"the Workflow is too large for the cluster: {message}",
            remedy="put long values into a file and give it with -p data=FILE",
        )
    if "HTTP request to an HTTPS server" in message:
        return UsageError(f"{what.split()[-1]}: the server speaks TLS", remedy="write its address with https://")
    if 300 <= status < 400:
        return UsageError(
            f"{what} is redirected to {headers.get('Location', 'nowhere')}", remedy="give that address instead"
        )
    of_argo = isinstance(said, dict) and "code" in said and said.get("kind") != "Status"
    if status == 500 and of_argo and not any(words in message for words in _PASSES):
        # argo-server answers so whatever is no kind of its own, from "cannot retry" to an API server that is away.
        return InfrastructureError(f"argo-server: {message}", remedy="foxrun get shows the workflow's state")
    if status in (429, 500, 502, 503, 504):
        return Unavailable(f"{message} ({what}: HTTP {status})", remedy="try again; foxrun doctor checks the parts")
    return UsageError(f"{message} (HTTP {status})", remedy="foxrun lint checks the Workflow")
