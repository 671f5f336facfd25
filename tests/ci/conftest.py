from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cli.conftest import here, repo

__all__ = ["here", "repo"]


@pytest.fixture(scope="module")
def namespace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    from tests.infra.namespace import namespace

    with namespace(tmp_path_factory.mktemp("infra")) as name:
        yield name
