"""Webhook payloads in the shapes that GitHub and GitLab document, with their types, nulls and odd spellings.

docs.github.com/webhooks/webhook-events-and-payloads; docs.gitlab.com/user/project/integrations/webhook_events.
argo-server reads each into typed structures before it believes a signature, so a field of another type refuses it.
"""

from __future__ import annotations

import hashlib
from typing import Any

ZEROS = "0" * 40
OWNER, NAME, AUTHOR = "fox-team", "alpha", "Ada Fox"
MESSAGE = "Widen the encoder\n\nby one lane"
GITHUB_URL, GITLAB_URL = f"https://github.com/{OWNER}/{NAME}", f"https://gitlab.example.org/{OWNER}/{NAME}"
TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"


def sha_of(text: str) -> str:
    """A commit of its own for each text."""
    return hashlib.sha1(text.encode("utf-8", "surrogatepass")).hexdigest()


def _github_user(login: str = "adafox") -> dict[str, Any]:
    api = f"https://api.github.com/users/{login}"
    return {
        "login": login, "id": 21031067, "node_id": "MDQ6VXNlcjIxMDMxMDY3", "gravatar_id": "", "type": "User",
        "avatar_url": "https://avatars1.githubusercontent.com/u/21031067?v=4", "url": api, "site_admin": False,
        "html_url": f"https://github.com/{login}", "following_url": f"{api}/following{{/other_user}}",
    }  # fmt: skip


def github_repository(
    *, fork: bool = False, number: int = 186853002, owner: str = OWNER, pushed: bool = False
) -> dict[str, Any]:
    """A repository; a push writes its times as numbers, every other event as text."""
    url, api = f"https://github.com/{owner}/{NAME}", f"https://api.github.com/repos/{owner}/{NAME}"
    times = (1557933565, 1557933657) if pushed else ("2019-05-15T15:19:25Z", "2019-05-15T15:20:32Z")
    return {
        "id": number, "node_id": "MDEwOlJlcG9zaXRvcnkxODY4NTMwMDI=", "name": NAME, "full_name": f"{owner}/{NAME}",
        "private": True, "owner": _github_user(owner), "html_url": url, "description": None, "fork": fork,
        "url": url if pushed else api, "branches_url": f"{api}/branches{{/branch}}",
        "created_at": times[0], "updated_at": "2019-05-15T15:20:41Z", "pushed_at": times[1],
        "git_url": f"git://github.com/{owner}/{NAME}.git", "ssh_url": f"git@github.com:{owner}/{NAME}.git",
        "clone_url": f"{url}.git", "homepage": None, "size": 0, "stargazers_count": 0, "watchers_count": 0,
        "language": "Python", "has_issues": True, "forks_count": 1, "mirror_url": None, "archived": False,
        "disabled": False, "open_issues_count": 2, "license": None, "forks": 1, "open_issues": 2, "watchers": 0,
        "default_branch": "main", "is_template": False, "topics": [], "visibility": "private",
        "custom_properties": {"team.name": "alpha"}, **({"master_branch": "main", "stargazers": 0} if pushed else {}),
    }  # fmt: skip


def github_push(
    ref: str, sha: str, *, fork: bool = False, author: str = AUTHOR, message: str = MESSAGE
) -> dict[str, Any]:
    """A push, or with ``sha`` all zeros the deletion of ``ref``."""
    deleted = sha == ZEROS
    person = {"name": author, "email": "ada@example.org", "username": "adafox"}
    commit = {
        "id": sha, "tree_id": TREE, "distinct": True, "message": message, "timestamp": "2019-05-15T15:20:30Z",
        "url": f"{GITHUB_URL}/commit/{sha}", "author": person, "committer": person, "added": [], "removed": [],
        "modified": ["trainer/model/vsn.py"],
    }  # fmt: skip
    return {
        "ref": ref, "before": sha_of(f"before {ref}"), "after": sha, "created": False, "deleted": deleted,
        "forced": False, "base_ref": None, "compare": f"{GITHUB_URL}/compare/6113728f27ae...{sha[:12]}",
        "commits": [] if deleted else [commit], "head_commit": None if deleted else commit,
        "repository": github_repository(fork=fork, pushed=True), "sender": _github_user(),
        "pusher": {"name": "adafox", "email": "ada@example.org"},
    }  # fmt: skip


def github_pull_request(
    action: str,
    branch: str,
    sha: str,
    *,
    base: str = "main",
    of: dict[str, Any] | str | None = "",
    title: str = "Wider",
) -> dict[str, Any]:
    """A pull request from ``branch`` of the repository itself, or of the repository ``of`` (None: it was deleted)."""
    here = github_repository()
    url, head = f"{GITHUB_URL}/pull/2", here if of == "" else of
    side = {"user": _github_user()}
    request = {
        "url": "https://api.github.com/repos/fox-team/alpha/pulls/2", "id": 279147437, "node_id": "MDExOlB1bGw=",
        "html_url": url, "diff_url": f"{url}.diff", "number": 2, "state": "closed" if action == "closed" else "open",
        "locked": False, "title": title, "user": _github_user(), "body": None, "created_at": "2019-05-15T15:20:33Z",
        "updated_at": "2019-05-15T15:20:33Z", "closed_at": None, "merged_at": None, "merge_commit_sha": None,
        "assignee": None, "assignees": [_github_user()], "requested_reviewers": [], "requested_teams": [],
        "labels": [{"id": 1362934389, "node_id": "MDU6", "url": f"{url}/labels/bug", "name": "bug", "color": "d73a4a",
                    "default": True, "description": "Something is wrong"}],
        "milestone": None,
        "head": {**side, "label": f"{OWNER}:{branch}", "ref": branch, "sha": sha, "repo": head},
        "base": {**side, "label": f"{OWNER}:{base}", "ref": base, "sha": sha_of("base"), "repo": here},
        "_links": {"self": {"href": url}}, "author_association": "OWNER", "auto_merge": None, "draft": False,
        "merged": False, "mergeable": None, "rebaseable": None, "mergeable_state": "unknown", "merged_by": None,
        "comments": 0, "review_comments": 0, "maintainer_can_modify": False, "commits": 1, "additions": 1,
        "deletions": 1, "changed_files": 1, "active_lock_reason": None,
    }  # fmt: skip
    moved = {"before": sha_of("before"), "after": sha} if action == "synchronize" else {}
    return {
        "action": action, "number": 2, "pull_request": request, "repository": here, "sender": _github_user(), **moved,
        "installation": {"id": 1, "node_id": "MDIzOkludGVncmF0aW9uSW5zdGFsbGF0aW9uMQ=="},
    }  # fmt: skip


def github_ref(ref: str, kind: str) -> dict[str, Any]:
    """What the events ``create`` and ``delete`` bring beside the push."""
    return {
        "ref": ref, "ref_type": kind, "master_branch": "main", "description": None, "pusher_type": "user",
        "repository": github_repository(), "sender": _github_user(),
    }  # fmt: skip


def github_ping() -> dict[str, Any]:
    """What GitHub sends when the webhook is made."""
    hook = {
        "type": "Repository", "id": 109948940, "name": "web", "active": True, "events": ["push", "pull_request"],
        "config": {"content_type": "json", "insecure_ssl": "0", "secret": "********", "url": "https://argo.example.org"},
        "updated_at": "2019-05-15T15:20:33Z", "created_at": "2019-05-15T15:20:33Z",
    }  # fmt: skip
    repository, sender = github_repository(), _github_user()
    return {"zen": "Anything added dilutes everything else.", "hook_id": 109948940, "hook": hook,
            "repository": repository, "sender": sender}  # fmt: skip


def _gitlab_project(number: int = 14) -> dict[str, Any]:
    return {
        "id": number, "name": "Alpha", "description": "", "web_url": GITLAB_URL, "avatar_url": None,
        "git_ssh_url": f"git@gitlab.example.org:{OWNER}/{NAME}.git", "git_http_url": f"{GITLAB_URL}.git",
        "namespace": OWNER, "visibility_level": 0, "path_with_namespace": f"{OWNER}/{NAME}", "default_branch": "main",
        "ci_config_path": None, "homepage": GITLAB_URL, "url": f"git@gitlab.example.org:{OWNER}/{NAME}.git",
        "ssh_url": f"git@gitlab.example.org:{OWNER}/{NAME}.git", "http_url": f"{GITLAB_URL}.git",
    }  # fmt: skip


def _gitlab_repository() -> dict[str, Any]:
    return {"name": "Alpha", "url": f"git@gitlab.example.org:{OWNER}/{NAME}.git", "description": "",
            "homepage": GITLAB_URL, "visibility_level": 0}  # fmt: skip


def _gitlab_commit(sha: str, message: str, author: str) -> dict[str, Any]:
    return {
        "id": sha, "message": message, "title": message.partition("\n")[0], "timestamp": "2012-01-03T23:36:29+02:00",
        "url": f"{GITLAB_URL}/commit/{sha}", "author": {"name": author, "email": "[REDACTED]"},
    }  # fmt: skip


def gitlab_push(
    ref: str, sha: str, *, kind: str = "push", author: str = AUTHOR, message: str = MESSAGE
) -> dict[str, Any]:
    """A push (or with ``kind`` tag_push one of a tag), or with ``sha`` all zeros the deletion of ``ref``."""
    deleted = sha == ZEROS
    older = _gitlab_commit(sha_of("older"), "older", "Somebody Else")
    changed = {"added": [], "modified": ["README.md"], "removed": []}
    return {
        "object_kind": kind, "event_name": kind, "before": sha_of(f"before {ref}"), "after": sha, "ref": ref,
        "ref_protected": False, "checkout_sha": None if deleted else sha, "message": None, "user_id": 4,
        "user_name": author, "user_username": "adafox", "user_email": "", "user_avatar": None, "project_id": 14,
        "project": _gitlab_project(), "repository": _gitlab_repository(), "push_options": {},
        "commits": [] if deleted else [{**older, **changed}, {**_gitlab_commit(sha, message, author), **changed}],
        "total_commits_count": 0 if deleted else 2,
    }  # fmt: skip


def gitlab_merge_request(
    action: str, branch: str, sha: str, *, target: str = "main", pushed: bool = False, source: int = 14,
    title: str = "Wider",
) -> dict[str, Any]:  # fmt: skip
    """A merge request; ``pushed``: the update brought commits; ``source``: the project that it comes from."""
    label = {
        "id": 206, "title": "API", "color": "#ffffff", "project_id": 14, "created_at": "2013-12-03T17:15:43Z",
        "updated_at": "2013-12-03T17:15:43Z", "template": False, "description": "API", "type": "ProjectLabel",
        "group_id": 41,
    }  # fmt: skip
    side = {key: value for key, value in _gitlab_project().items() if key != "id"}
    person = {"id": 1, "name": AUTHOR, "username": "adafox", "avatar_url": None, "email": "[REDACTED]"}
    attributes = {
        "id": 99, "iid": 1, "target_branch": target, "source_branch": branch, "source_project_id": source,
        "author_id": 51, "assignee_ids": [], "assignee_id": None, "reviewer_ids": [], "title": title,
        "created_at": "2013-12-03 17:23:34 UTC", "updated_at": "2013-12-03 17:23:34 UTC", "last_edited_at": None,
        "milestone_id": None, "state_id": 1, "state": "opened", "blocking_discussions_resolved": True,
        "work_in_progress": False, "draft": False, "merge_status": "unchecked", "target_project_id": 14,
        "description": "", "total_time_spent": 1800, "human_total_time_spent": "30m", "merge_commit_sha": None,
        "url": f"{GITLAB_URL}/-/merge_requests/1", "source": side, "target": side, "labels": [label],
        "last_commit": _gitlab_commit(sha, MESSAGE, AUTHOR), "action": action, "detailed_merge_status": "mergeable",
        **({"oldrev": sha_of("before")} if pushed else {}),
    }  # fmt: skip
    return {
        "object_kind": "merge_request", "event_type": "merge_request", "user": person, "project": _gitlab_project(),
        "repository": _gitlab_repository(), "object_attributes": attributes, "labels": [label],
        "changes": {"updated_at": {"previous": None, "current": "2017-09-15 16:52:00 UTC"},
                    "labels": {"previous": [], "current": [label]}},
        "assignees": [person], "reviewers": [person],
    }  # fmt: skip
