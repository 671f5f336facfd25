"""The WorkflowEventBindings of infra/: which webhook deliveries start `ci-gate`, and as what.

argo-server (4.0.5, server/event/dispatch) evaluates every expression over payload, metadata (headers x-*, lower case,
lists), discriminator and namespace. Only those of submit.metadata have sprig. An event's text reaches no template but
as a parameter that holds nothing that Argo would read: see `_exact`. docs/ci.md says what starts and what does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

TEMPLATE = "ci-gate"
PREFIX = "ml-alpha-"
BRANCH, AUTHOR, MESSAGE, ORIGIN, EVENT = (
    f"foxrun.dev/{key}" for key in ("branch", "author", "message", "origin", "event")
)
_NONE = "0" * 40
# What argo-server writes into an argument is JSON without its quotes (4.0.5, Item.String), so these would arrive
# escaped; and `{{` would be a tag in whatever the argument is put into.
_EXACT = r'`^[^"\\\x00-\x1f\x7f\x{2028}\x{2029}]*$`'


@dataclass(frozen=True, kw_only=True)
class Source:
    """One kind of delivery: when it starts a gate, and where in its payload the facts lie (expressions)."""

    name: str
    event: str  # what the label says
    selector: tuple[str, ...]  # all of them must hold; each may rely on those before it
    sha: str
    branch: str
    repository: str  # an address: the same name on two hosts is two repositories
    author: str
    message: str
    tree: str = '""'  # where the host tells it


SOURCES = (
    Source(
        name="github-push",
        event="push",
        selector=(
            'metadata["x-github-event"] == ["push"]',
            f'(payload.ref ?? "") startsWith "refs/heads/{PREFIX}"',
            "payload.deleted == false",
            "payload.repository.fork == false",
        ),
        sha="payload.after",
        branch='trimPrefix(payload.ref, "refs/heads/")',
        repository="payload.repository.html_url",
        author='payload.head_commit?.author?.name ?? ""',
        message='payload.head_commit?.message ?? ""',
        tree='(payload.head_commit?.id ?? "") == payload.after ? payload.head_commit.tree_id ?? "" : ""',
    ),
    Source(
        name="github-pull-request",
        event="pull-request",
        selector=(
            'metadata["x-github-event"] == ["pull_request"]',
            'payload.action in ["opened", "reopened", "synchronize"]',
            "payload.pull_request.base.ref == payload.repository.default_branch",
            "payload.pull_request.head.repo?.id == payload.repository.id",
            "payload.repository.fork == false",
        ),
        sha="payload.pull_request.head.sha",
        branch="payload.pull_request.head.ref",
        repository="payload.repository.html_url",
        author='payload.pull_request.user?.login ?? ""',
        message='payload.pull_request.title ?? ""',
    ),
    Source(
        name="gitlab-push",
        event="push",
        selector=(
            'metadata["x-gitlab-event"] == ["Push Hook"]',
            'payload.object_kind == "push"',
            f'(payload.ref ?? "") startsWith "refs/heads/{PREFIX}"',
        ),
        sha="payload.after",
        branch='trimPrefix(payload.ref, "refs/heads/")',
        repository="payload.project.web_url",
        author='payload.user_name ?? ""',
        message='find(payload.commits ?? [], .id == payload.after)?.message ?? ""',
    ),
    Source(
        name="gitlab-merge-request",
        event="pull-request",
        selector=(
            'metadata["x-gitlab-event"] == ["Merge Request Hook"]',
            'payload.object_kind == "merge_request"',
            # An update without oldrev brought no commits: somebody changed a title or a label.
            '(payload.object_attributes.action in ["open", "reopen"] || '
            'payload.object_attributes.action == "update" && payload.object_attributes.oldrev != nil)',
            "payload.object_attributes.target_branch == payload.project.default_branch",
            "payload.object_attributes.source_project_id == payload.object_attributes.target_project_id",
        ),
        sha="payload.object_attributes.last_commit.id",
        branch="payload.object_attributes.source_branch",
        repository="payload.project.web_url",
        author='payload.user?.name ?? ""',
        message='payload.object_attributes.title ?? ""',
    ),
)


def binding(source: Source) -> dict[str, Any]:
    """The WorkflowEventBinding of one kind of delivery."""
    sha = source.sha
    selector = [
        *source.selector,
        f'({sha} ?? "") matches "^([0-9a-f]{{40}}|[0-9a-f]{{64}})$"',
        f'not ({sha} startsWith "{_NONE}")',
    ]
    # A pull request and the push that it is made of are one commit of one branch: they start one gate.
    identity = f'{source.repository} + "\\nrefs/heads/" + {source.branch} + "\\n" + {sha}'
    label = label_of("b")
    named = {
        "foxrun.dev/sha": sha,
        BRANCH: _shown(source.branch, 1000),
        AUTHOR: _shown(source.author, 300),
        MESSAGE: _shown(source.message, 1000),
        ORIGIN: _shown(source.repository, 1000),
        # Argo shows these two as Markdown, so nothing of the event but what is legal in a label.
        "workflows.argoproj.io/title": f'let b = {source.branch}; "CI gate of " + {sha}[:7] + " on " + ({label})',
        "workflows.argoproj.io/description": f'"Started by a {source.event.replace("-", " ")}; commit " + {sha}',
    }
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "WorkflowEventBinding",
        "metadata": {"name": f"{TEMPLATE}-{source.name}"},
        "spec": {
            "event": {"selector": " && ".join(selector)},
            "submit": {
                "workflowTemplateRef": {"name": TEMPLATE},
                "metadata": {
                    "name": f'"{TEMPLATE}-" + {sha}[:7] + "-" + sprig.trunc(16, sprig.sha256sum({identity}))',
                    "labels": {
                        "foxrun.dev/kind": f'"{TEMPLATE}"',
                        "foxrun.dev/sha": sha,
                        BRANCH: f"let b = {source.branch}; {label}",
                        EVENT: f'"{source.event}"',
                    },
                    "annotations": named,
                },
                "arguments": {
                    "parameters": [
                        {"name": "sha", "valueFrom": {"event": sha}},
                        {"name": "branch", "valueFrom": {"event": _exact(source.branch)}},
                        *([{"name": "tree", "valueFrom": {"event": source.tree}}] if source.tree != '""' else []),
                    ]
                },
            },
        },
    }


def bindings() -> Iterator[dict[str, Any]]:
    """All of them."""
    yield from map(binding, SOURCES)


def prepare(spec: dict[str, Any]) -> None:
    """Make the spec of a template fit for events, in place.

    Its image may hold {sha}, as foxrun's own setting does; the branch's label is made of the text that the binding kept
    in an annotation, since the argument may be a cleaned one; and what the binding says in title and description stays.
    """
    pattern = "{{=sprig.replace('{sha}', workflow.parameters.sha, workflow.parameters.image)}}"
    for template in spec["templates"]:
        container = template.get("container") or {}
        if container.get("image") == "{{workflow.parameters.image}}":
            container["image"] = pattern
        for task in (template.get("dag") or {}).get("tasks") or []:
            for parameter in (task.get("arguments") or {}).get("parameters") or []:
                if parameter["name"] == "image":
                    parameter["value"] = pattern
        if template["name"] in ("exit-handler", "pending"):
            # What the event said travels as base64: in a value of its own Argo would read its braces once more.
            said = "{{=sprig.b64enc(toJson(workflow.annotations?.foxrun ?? {}))}}"
            container["env"].append({"name": "FOXRUN_EVENT", "value": said})
    original = 'workflow.annotations?.foxrun?.["dev/branch"] ?? workflow.parameters.branch'
    spec["workflowMetadata"]["labelsFrom"][BRANCH] = {"expression": f"let b = {original}; {label_of('b')}"}
    del spec["workflowMetadata"]["annotations"]


def label_of(text: str) -> str:
    """``workflows.names.label_value`` in Argo's expression language, of the variable or path ``text``."""
    return " ".join(
        rf"""
        {text} matches "^([A-Za-z0-9]([A-Za-z0-9_.-]{{0,61}}[A-Za-z0-9])?)?$"
        ? {text}
        : sprig.trimPrefix("-", sprig.regexReplaceAll("[-_.]+$", sprig.trunc(52, sprig.regexReplaceAll("^[-_.]+",
          sprig.regexReplaceAll("[^A-Za-z0-9_.-]+", {text}, "-"), "")), "")
          + "-" + sprig.trunc(10, sprig.sha256sum({text})))
        """.split()
    )


def _shown(text: str, characters: int) -> str:
    """As much of a text as an annotation should hold: objects have a limit, and a long message starts a gate too."""
    return f'sprig.regexReplaceAll("(?s)^(.{{0,{characters}}}).*$", {text}, "${{1}}")'


def _exact(text: str) -> str:
    """The text itself where an argument carries it unharmed, else with a dash for each character that is not plain."""
    plain = 'join(map(split(b, ""), # matches "^[A-Za-z0-9_./-]$" ? # : "-"))'
    return f'let b = {text}; b matches {_EXACT} && not (b contains "{{{{") ? b : {plain}'
