"""Kubernetes names and label values that are legal for any text.

Text that is legal already is kept. Other text is cleaned, cut, and ends in a hash of the original, so two texts that
share a prefix or differ in a slash stay apart. Rules: https://kubernetes.io/docs/concepts/overview/working-with-objects/names
"""

from __future__ import annotations

import hashlib
import re

LABEL_LIMIT = 63
# Argo labels pods with the workflow's name and makes theirs from it (`name-template-hash`); a CronWorkflow adds 11.
WORKFLOW_NAME_LIMIT = 52
# The API server appends five characters to metadata.generateName.
GENERATED_SUFFIX = 5
HASH_LENGTH = 10

_LABEL_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?")
_DNS_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?")


def label_value(text: str) -> str:
    """Any text as a legal label value: at most 63 of ``[A-Za-z0-9_.-]``, a letter or digit at both ends; "" stays "".

    Use it for selectors too: ``foxrun.dev/branch=<label_value(branch)>``.
    """
    if _LABEL_VALUE.fullmatch(text):
        return text
    return _shorten(re.sub(r"[^A-Za-z0-9_.-]+", "-", text), text, LABEL_LIMIT)


def workflow_name(text: str) -> str:
    """Any text as the name of a Workflow: at most 52 of ``[a-z0-9-]``, a letter or digit at both ends."""
    if len(text) <= WORKFLOW_NAME_LIMIT and _DNS_LABEL.fullmatch(text):
        return text
    return _shorten(_dns(text), text, WORKFLOW_NAME_LIMIT)


def name_prefix(text: str) -> str:
    """Any text as metadata.generateName: ends in a dash and leaves room for what the API server appends."""
    limit = WORKFLOW_NAME_LIMIT - GENERATED_SUFFIX - 1
    stem = text.removesuffix("-")
    if not (len(stem) <= limit and _DNS_LABEL.fullmatch(stem)):
        stem = _shorten(_dns(text), text, limit)
    return stem + "-"


def file_name(text: str) -> str:
    """Any text as a file name that needs no quoting anywhere: ``[A-Za-z0-9_.-]``, no dot or dash in front.

    The end is kept when it is cut, because readers go by the extension.
    """
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", text)[-100:].lstrip(".-") or "file"


def _dns(text: str) -> str:
    return re.sub(r"[^a-z0-9-]+", "-", text.lower())


def _shorten(cleaned: str, original: str, limit: int) -> str:
    # surrogatepass: a name that the file system gave as undecodable bytes must not end in a traceback.
    digest = hashlib.sha256(original.encode("utf-8", "surrogatepass")).hexdigest()[:HASH_LENGTH]
    stem = cleaned.strip("-_.")[: limit - HASH_LENGTH - 1].rstrip("-_.")
    return f"{stem}-{digest}" if stem else digest
