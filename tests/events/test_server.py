"""An argo-server with the rights of infra/'s account serves webhooks; why it must run in auth mode client."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.events import payloads
from tests.events.deliveries import GITHUB, MISSING, RIGHT, Delivery

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(not os.environ.get("KUBECONFIG"), reason="no cluster: KUBECONFIG is not set"),
    pytest.mark.skipif(shutil.which("argo") is None, reason="no argo on PATH"),
    pytest.mark.skipif(shutil.which("kubectl") is None, reason="no kubectl on PATH"),
]
if TYPE_CHECKING:
    from tests.events.server import Endpoint
if os.environ.get("KUBECONFIG"):
    from tests.events.server import Endpoint
    from tests.infra.namespace import Account, kubeconfig, namespace

DEADLINE_S = 90


def test_signatures_count_in_client_mode_alone(tmp_path: Path) -> None:
    def change(thing: dict[str, Any]) -> None:
        if thing["kind"] == "WorkflowTemplate":
            thing["spec"]["suspend"] = True

    with namespace(tmp_path, "bare", change, components=("webhooks",)) as name:
        there = Endpoint(name)
        own = tmp_path / "kubeconfig"
        own.write_text(kubeconfig(Account(name, "argo-server")))
        with _server("client", name, str(own), tmp_path / "client.log") as address:
            client = replace(there, server=address)
            assert client.send(_push("early"))[0] == 403, "there is no Secret yet"
            there.set_up()
            assert client.send(_push("signed"))[0] == 200
            assert client.send(_push("unsigned", MISSING))[0] == 401
        assert _branches(there) == ["signed"]
        # Whoever reaches it has its rights. infra/'s account may create no Workflow; most others' may.
        with _server("server", name, os.environ["KUBECONFIG"], tmp_path / "server.log") as address:
            # It answers 503 until it has seen the bindings.
            deadline = time.monotonic() + 60
            while (code := replace(there, server=address).send(_push("unsigned", MISSING))[0]) == 503:
                assert time.monotonic() < deadline
                time.sleep(1.0)
            assert code == 200
        assert _branches(there) == ["signed", "unsigned"]
        for log in tmp_path.glob("*.log"):
            assert not [secret for secret in there.secrets.values() if secret in log.read_text()], log.name


def _push(branch: str, secret: str = RIGHT) -> Delivery:
    payload = payloads.github_push(f"refs/heads/ml-alpha-{branch}", payloads.sha_of(branch))
    return Delivery(host=GITHUB, event="push", what="", payload=payload, starts=None, secret=secret)


def _branches(there: Endpoint) -> list[str]:
    started = there.workflows().values()
    return sorted(w["metadata"]["labels"]["foxrun.dev/branch"].removeprefix("ml-alpha-") for w in started)


@contextmanager
def _server(mode: str, name: str, config: str, log: Path) -> Iterator[str]:
    """An argo-server of this machine, for one namespace."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    words = [
        "--namespaced",
        "--namespace",
        name,
        "--auth-mode",
        mode,
        "--secure=false",
        "--port",
        address.split(":")[1],
    ]
    kept = {k: v for k, v in os.environ.items() if not k.startswith("ARGO_")}
    with log.open("w") as output:
        process = subprocess.Popen(
            ["argo", "server", *words], stdout=output, stderr=output, env={**kept, "KUBECONFIG": config}
        )
    try:
        deadline = time.monotonic() + DEADLINE_S
        while not _answers(address):
            assert process.poll() is None and time.monotonic() < deadline, log.read_text()[-3000:]
            time.sleep(0.2)
        yield address
    except AssertionError as error:
        raise AssertionError(f"{error}\n{log.read_text()[-3000:]}") from error
    finally:
        process.kill()
        process.wait(timeout=60)


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"http://{address}/api/v1/version", timeout=10):
            return True
    except urllib.error.HTTPError as error:
        with error:
            return error.code != 503  # it listens, and its own gateway does not yet
    except OSError:
        return False
