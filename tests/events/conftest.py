from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.events.server import Endpoint


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    """A namespace with infra/'s webhooks; what a delivery starts is suspended, since it is not about what runs."""
    from tests.events.server import Endpoint
    from tests.infra.namespace import namespace

    def change(thing: dict[str, Any]) -> None:
        if thing["kind"] == "WorkflowTemplate":
            thing["spec"]["suspend"] = True

    with namespace(tmp_path_factory.mktemp("infra"), change=change, components=("webhooks",)) as name:
        made = Endpoint(name)
        made.set_up()
        yield made
