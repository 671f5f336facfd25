"""Tags of a Workflow's images replaced by what they mean at submit, so that both legs run the same bytes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING

from orchestrator import images, registry
from orchestrator.errors import UsageError

if TYPE_CHECKING:
    from workflows.parameters import RunParameters


def pinned(
    parameters: RunParameters,
    *,
    how: str,
    on_nodes: Callable[[images.Reference], str],
    say: Callable[[str], None],
) -> RunParameters:
    """The same with the digests of its images, as far as somebody tells.

    Args:
        parameters: of the Workflow.
        how: the setting image_digest: auto, require, or off.
        on_nodes: the digest that the cluster's nodes hold; "" where they say none.
        say: hears of an image that stays a tag.

    Raises:
        UsageError: nobody tells and ``how`` is require; two nodes hold different images of one tag.
    """
    if how == "off":
        return parameters
    digests: dict[str, str] = {}
    for text in parameters.images:
        reference = images.parse(text)
        if reference.digest:
            continue
        try:
            digests[text], why = _from_registry(reference), ""
        except registry.NotTold as error:
            digests[text], why = on_nodes(reference), str(error)
        if digests[text]:
            continue
        del digests[text]
        what = f"image {text} stays a tag: {why}, and no node names its digest"
        if how == "require":
            raise UsageError(what, remedy="push it to a registry that this machine reaches, or give it by digest")
        say(what)
    return dataclasses.replace(parameters, digests=tuple(sorted(digests.items())))


def _from_registry(reference: images.Reference) -> str:
    if reference.is_local:
        raise registry.NotTold("localhost is no registry")
    return registry.digest_of(reference)
