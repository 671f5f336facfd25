from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module")
def namespace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    from tests.infra.namespace import namespace

    with namespace(tmp_path_factory.mktemp("infra"), components=("webhooks", "nightly")) as name:
        yield name
