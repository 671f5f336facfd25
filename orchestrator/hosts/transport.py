"""HTTPS to a host's API: JSON in and out, tried again while the trouble is passing, never a word of the token.

urllib3, as for argo-server: the four requests that are made of each host need no client library of its own.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlencode, urljoin, urlsplit

from orchestrator.errors import InfrastructureError
from orchestrator.printable import printable

CONNECT_S, READ_S = 5.0, 15.0
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 20.0
PATIENCE_S = 60.0  # for all requests of one post together, waits that the host asks for included
PER_PAGE, MOST_PAGES = 100, 30
MOST_BYTES = 16 << 20  # of an answer; a hundred comments of the greatest length are some 7 MB
_PASSING = (429, 500, 502, 503, 504)


class HostError(InfrastructureError):
    """The host refused or was not reached. ``status``: of HTTP, 0 without an answer. ``passing``: worth a retry."""

    def __init__(self, message: str, *, remedy: str = "", status: int = 0, passing: bool = False) -> None:
        super().__init__(message, remedy=remedy)
        self.status = status
        self.passing = passing


class Transport:
    """One API. ``patience_s`` is how long in all it is asked again what may pass, ``pause_s`` the first wait."""

    def __init__(
        self,
        base: str,
        headers: Mapping[str, str],
        *,
        secret: str,
        patience_s: float = PATIENCE_S,
        pause_s: float = FIRST_PAUSE_S,
        read_s: float = READ_S,
    ) -> None:
        self.base = base.rstrip("/")
        self._headers = {"User-Agent": "foxrun", "Accept": "application/json", **headers}
        self._secret = secret
        self._pause_s, self._read_s = pause_s, read_s
        self._end = time.monotonic() + patience_s
        self._pool: Any = None

    def json(self, method: str, path: str, *, query: Mapping[str, str] | None = None, body: Any = None,
             again: bool = True) -> Any:  # fmt: skip
        """One request and its answer.

        Args:
            again: whether a second one does no harm, so that it may follow one whose fate is unknown.

        Raises:
            HostError: refused, or not answered in all the time there is.
        """
        pause = self._pause_s
        while True:
            try:
                return self._once(method, path, query, body)
            except _Passing as trouble:
                wait = trouble.after_s if trouble.after_s is not None else pause
                # A 429 has changed nothing; what else failed may have been done.
                if not (again or trouble.status == 429) or time.monotonic() + wait >= self._end:
                    raise HostError(str(trouble), remedy=trouble.remedy, status=trouble.status, passing=True) from None
                time.sleep(wait)
                pause = min(2 * pause, LONGEST_PAUSE_S)

    def pages(self, path: str, query: Mapping[str, str]) -> Iterator[Any]:
        """The items of a list, page after page."""
        for page in range(1, MOST_PAGES + 1):
            items = self.json("GET", path, query={**query, "per_page": str(PER_PAGE), "page": str(page)})
            yield from items if isinstance(items, list) else []
            if not isinstance(items, list) or len(items) < PER_PAGE:
                return

    @property
    def left_s(self) -> float:
        """Seconds of patience that are left."""
        return self._end - time.monotonic()

    def _once(self, method: str, path: str, query: Mapping[str, str] | None, body: Any) -> Any:
        url = self.base + path + ("?" + urlencode(query) if query else "")
        data = None if body is None else json.dumps(body).encode()
        for _ in range(3):
            response, answer = self._send(method, url, data)
            if response.status not in (301, 302, 307, 308):
                break
            # A repository that was renamed. The token goes to nobody but the host that it is for.
            target = urljoin(url, response.headers.get("Location") or "")
            if _server(target) != _server(url) or (method != "GET" and response.status == 302):
                break
            url = target
        if response.status < 300:
            try:
                return json.loads(answer) if answer else None
            except (ValueError, RecursionError):
                raise HostError(
                    f"{self._where} does not answer in JSON", remedy="check host_api: it is an API and no web page"
                ) from None
        raise self._refusal(response, answer)

    def _send(self, method: str, url: str, data: bytes | None) -> tuple[Any, bytes]:
        """(answer's head, its body)."""
        from urllib3 import Timeout, exceptions

        headers = {**self._headers, **({"Content-Type": "application/json"} if data is not None else {})}
        # An exhausted patience still leaves one request its second.
        timeout = Timeout(connect=CONNECT_S, read=min(self._read_s, max(1.0, self.left_s)))
        try:
            response = self._connections().request(
                method, url, body=data, headers=headers, timeout=timeout, retries=False, redirect=False,
                preload_content=False,
            )  # fmt: skip
            return response, self._body(response)
        except exceptions.LocationParseError:
            raise HostError(f"{self._where} is no address", remedy="check host_api") from None
        except exceptions.SSLError as error:
            raise HostError(
                f"{self._where}: no trusted TLS: {self._plain(error)}",
                remedy="name the authority's certificate in SSL_CERT_FILE, or check host_api",
            ) from None
        except (exceptions.HTTPError, OSError) as error:
            raise _Passing(f"{self._where} does not answer: {self._plain(error)}") from None

    def _body(self, response: Any) -> bytes:
        """An answer, as it comes: one that never ends, or a byte at a time, holds up nobody for ever."""
        data, end = bytearray(), max(self._end, time.monotonic() + 1.0)
        while chunk := response.read1(1 << 16):
            data += chunk
            if len(data) > MOST_BYTES or time.monotonic() > end:
                response.close()
                raise HostError(f"{self._where}: its answer does not end", remedy="check host_api", passing=True)
        response.release_conn()
        return bytes(data)

    def _connections(self) -> Any:
        import ssl
        from urllib.request import getproxies, proxy_bypass

        import urllib3

        if self._pool is None:
            scheme, host = urlsplit(self.base).scheme, urlsplit(self.base).hostname or ""
            proxy = "" if proxy_bypass(host) else getproxies().get(scheme, "")
            # Python's own context knows SSL_CERT_FILE, and the system's authorities.
            context = ssl.create_default_context() if scheme == "https" else None
            self._pool = (
                urllib3.ProxyManager(proxy, ssl_context=context) if proxy else urllib3.PoolManager(ssl_context=context)
            )
        return self._pool

    def _refusal(self, response: Any, answer: bytes) -> Exception:
        status, said = int(response.status), self._said(answer)
        text = f"{self._where}: HTTP {status}" + (f": {said}" if said else "")
        after = _retry_after(response.headers)
        limited = status == 403 and (after is not None or response.headers.get("X-RateLimit-Remaining") == "0")
        if status in _PASSING or limited:
            return _Passing(text, status=429 if limited else status, after_s=after)
        remedy = {
            401: "the token is refused: give a valid one in FOXRUN_HOST_TOKEN",
            403: "the token may not do this; docs/ci.md says which permissions it needs",
            404: "check the repository's address, and that the token may see it; docs/ci.md says what it needs",
        }.get(status, "")
        return HostError(text, remedy=remedy, status=status)

    def _said(self, data: bytes) -> str:
        try:
            value = json.loads(data)
        except (ValueError, RecursionError):
            return ""
        if not isinstance(value, dict):
            return ""
        message = value.get("message") or value.get("error") or ""
        details = value.get("errors")
        more = f" ({json.dumps(details)})" if details else ""
        return self._plain(f"{message if isinstance(message, str) else json.dumps(message)}{more}")

    def _plain(self, said: object) -> str:
        text = " ".join(str(said).split())
        text = text.rsplit(": ", 1)[-1] if "object at 0x" in text else text
        return printable(text.replace(self._secret, "***") if self._secret else text)[:300]

    @property
    def _where(self) -> str:
        return urlsplit(self.base).netloc


class _Passing(Exception):
    """Trouble that may pass; ``after_s``: when the host wants to be asked again."""

    def __init__(self, message: str, *, status: int = 0, after_s: float | None = None) -> None:
        super().__init__(message)
        self.status, self.after_s = status, after_s
        self.remedy = "nothing is lost: foxrun status NAME posts it again"


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds of a Retry-After header: a number, or a date."""
    text = str(headers.get("Retry-After") or "").strip()
    if text.isdigit():
        return float(text)
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time()) if text else None
    except ValueError:
        return None


def _server(url: str) -> tuple[str, str]:
    return urlsplit(url).scheme, urlsplit(url).netloc
