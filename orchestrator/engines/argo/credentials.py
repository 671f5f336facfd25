"""Where a cluster is and who we are there, read anew when the server refuses us: tokens expire and are rotated.

The `kubernetes` package reads kubeconfigs, runs exec plugins and knows the inside of a pod. Importing its client loads
700 models, 1.5 s on a slow machine and 35 MB; what is needed here is its configuration alone.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from orchestrator.errors import InfrastructureError, UsageError

NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


@dataclass(frozen=True, kw_only=True)
class Access:
    """A server to talk to: base address, connections with their TLS settings, and headers that say who we are."""

    host: str
    pool: Any  # urllib3.PoolManager
    headers: Callable[[], Mapping[str, str]]
    namespace: str


class Credentials(Protocol):
    """Something that knows how to get at a server; ``load`` reads files and variables anew every time."""

    def load(self) -> Access:
        """Raises UsageError or InfrastructureError that names the file."""
        ...


@dataclass(frozen=True, kw_only=True)
class KubeCredentials:
    """The Kubernetes API: a kubeconfig and its context, or the service account of the pod that we run in."""

    kubeconfig: str = ""  # empty: KUBECONFIG, else ~/.kube/config, else in-cluster
    context: str = ""  # empty: the current one
    namespace: str = ""  # empty: the context's, in a pod its own, else default

    def load(self) -> Access:
        """Read the configuration as it is now; an exec plugin is run again."""
        parts = _kubernetes()
        configuration = parts.configuration()
        try:
            namespace = self._load(parts, configuration)
        except parts.config_exception as error:
            raise UsageError(
                f"{self.where()}: {_one_line(error)}",
                remedy="kubectl config get-contexts shows what there is; then --context and --kubeconfig choose",
            ) from None
        except OSError as error:
            raise UsageError(f"{self.where()}: {error.strerror or error}", remedy="check --kubeconfig") from None

        def headers() -> Mapping[str, str]:
            settings = configuration.auth_settings().values()
            return {item["key"]: item["value"] for item in settings if item.get("in") == "header" and item.get("value")}

        return Access(
            host=str(configuration.host).rstrip("/"),
            pool=parts.rest_client(configuration).pool_manager,
            headers=headers,
            namespace=self.namespace or namespace or "default",
        )

    def _load(self, parts: _Parts, configuration: Any) -> str:
        """Fill ``configuration``; returns the namespace that it names, if any."""
        if self._in_cluster():
            parts.load_incluster_config(client_configuration=configuration)
            return NAMESPACE_FILE.read_text("utf-8").strip() if NAMESPACE_FILE.exists() else ""
        file = self.kubeconfig or None
        parts.load_kube_config(config_file=file, context=self.context or None, client_configuration=configuration)
        contexts, active = parts.list_contexts(config_file=file)
        chosen = next((item for item in contexts if item["name"] == self.context), active)
        return str((chosen.get("context") or {}).get("namespace") or "")

    def _in_cluster(self) -> bool:
        if self.kubeconfig or self.context or "KUBERNETES_SERVICE_HOST" not in os.environ:
            return False
        return not any(Path(file).expanduser().exists() for file in self._files())

    def _files(self) -> list[str]:
        named = self.kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config"
        return [file for file in named.split(os.pathsep) if file]

    def exists(self) -> bool:
        """Whether there is a kubeconfig, or we run in a pod."""
        return "KUBERNETES_SERVICE_HOST" in os.environ or any(Path(f).expanduser().exists() for f in self._files())

    def where(self) -> str:
        """The files that are read, for messages."""
        files = ", ".join(self._files())
        return f"kubeconfig {files}" + (f", context {self.context}" if self.context else "")


@dataclass(frozen=True, kw_only=True)
class ServerCredentials:
    """argo-server: ``host:port`` or an http(s) address, with a token."""

    server: str
    token: str = field(default="", repr=False)  # empty: token_file, else the variable ARGO_TOKEN
    token_file: str = ""
    secure: bool = True  # TLS; an address with http:// or https:// says it itself
    verify: bool = True  # check the server's certificate
    base_path: str = ""  # of a server behind a proxy that gave it a path
    namespace: str = ""

    def load(self) -> Access:
        """Read the token anew."""
        import urllib3

        host = self.server.rstrip("/")
        if "://" not in host:
            host = f"{'https' if self.secure else 'http'}://{host}"
        if not host.startswith(("http://", "https://")):
            raise UsageError(f"argo-server {self.server!r} is no address", remedy="write HOST:PORT, or https://HOST")
        token = self._token()
        ssl: dict[str, Any] = {} if self.verify else {"cert_reqs": "CERT_NONE"}
        if not self.verify:
            urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
        return Access(
            host=host + self.base_path.rstrip("/"),
            pool=urllib3.PoolManager(maxsize=8, **ssl),
            headers=lambda: {"Authorization": token} if token else {},
            namespace=self.namespace or "default",
        )

    def _token(self) -> str:
        token = self.token
        if not token and self.token_file:
            try:
                token = Path(self.token_file).expanduser().read_text("utf-8").strip()
            except OSError as error:
                raise UsageError(f"token file {self.token_file}: {error.strerror}", remedy="check the path") from None
        token = token or os.environ.get("ARGO_TOKEN", "").strip()
        if any(ord(character) < 32 for character in token):
            raise UsageError("argo-server's token holds a line break or another control character", remedy="mend it")
        # ARGO_TOKEN holds the whole header ("Bearer ..."), files and settings often the bare token.
        return f"Bearer {token}" if token and " " not in token else token


@dataclass(frozen=True)
class _Parts:
    """What we use of the `kubernetes` package."""

    configuration: Any
    rest_client: Any
    load_kube_config: Any
    load_incluster_config: Any
    list_contexts: Any
    config_exception: Any


_loaded: list[_Parts] = []


def _kubernetes() -> _Parts:
    if not _loaded:
        try:
            _loaded.append(_light())
        except (ImportError, AttributeError):
            _loaded.append(_whole())
    return _loaded[0]


def _light() -> _Parts:
    """Import the package's configuration without its models, and leave no trace of the way in sys.modules."""
    if "kubernetes" in sys.modules:
        return _whole()
    spec = importlib.util.find_spec("kubernetes")
    if spec is None or not spec.submodule_search_locations:
        raise InfrastructureError(
            "the Python package `kubernetes` is not installed", remedy="pip install 'kubernetes>=31,<37'"
        )
    root = Path(next(iter(spec.submodule_search_locations)))
    before = set(sys.modules)
    try:
        package = _hollow("kubernetes", root)
        client = _hollow("kubernetes.client", root / "client")
        package.client = client  # type: ignore[attr-defined]
        client.ApiClient = object  # type: ignore[attr-defined]  # named by kube_config, not used by what we call
        from kubernetes.client.configuration import Configuration

        client.Configuration = Configuration  # type: ignore[attr-defined]
        return _parts(Configuration)
    finally:
        # Whoever imports kubernetes after us gets the real one.
        for name in set(sys.modules) - before:
            if name.split(".")[0] == "kubernetes":
                del sys.modules[name]


def _hollow(name: str, path: Path) -> types.ModuleType:
    module = types.ModuleType(name)
    module.__path__ = [str(path)]
    sys.modules[name] = module
    return module


def _whole() -> _Parts:
    from kubernetes.client import Configuration

    return _parts(Configuration)


def _parts(configuration: Any) -> _Parts:
    from kubernetes.client.rest import RESTClientObject
    from kubernetes.config.config_exception import ConfigException
    from kubernetes.config.incluster_config import load_incluster_config
    from kubernetes.config.kube_config import list_kube_config_contexts, load_kube_config

    return _Parts(
        configuration=configuration,
        rest_client=RESTClientObject,
        load_kube_config=load_kube_config,
        load_incluster_config=load_incluster_config,
        list_contexts=list_kube_config_contexts,
        config_exception=ConfigException,
    )


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())
