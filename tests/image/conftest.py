from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.image.images import Image


@pytest.fixture(scope="session")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    from tests.image import images

    return images.image(images.snapshot(tmp_path_factory.mktemp("image") / "context"))


@pytest.fixture(scope="module")
def namespace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    from tests.infra.namespace import namespace

    with namespace(tmp_path_factory.mktemp("infra")) as name:
        yield name
