"""Which API an address stands for, and who is never given the token."""

from __future__ import annotations

import pytest

from orchestrator.errors import UsageError
from orchestrator.hosts.repository import Repository, repository_of, web_address


@pytest.mark.parametrize(
    ("origin", "api", "expected"),
    [
        ("https://github.com/desk/alpha", "", "github https://api.github.com desk/alpha"),
        ("https://github.com/desk/alpha.git", "", "github https://api.github.com desk/alpha"),
        ("git@github.com:desk/alpha.git", "", "github https://api.github.com desk/alpha"),
        ("ssh://git@github.com:22/desk/alpha", "", "github https://api.github.com desk/alpha"),
        ("https://user:pass@gitlab.com/a/b/c.git", "", "gitlab https://gitlab.com/api/v4 a/b/c"),
        ("https://ghe.example/d/a", "https://ghe.example/api/v3/", "github https://ghe.example/api/v3 d/a"),
        ("git@corp.ghe.com:d/a", "https://api.corp.ghe.com", "github https://api.corp.ghe.com d/a"),
        ("http://lab.example:80/a/b", "http://lab.example:80/api/v4", "gitlab http://lab.example:80/api/v4 a/b"),
        ("https://h.example/lab/a/b", "https://h.example/lab/api/v4", "gitlab https://h.example/lab/api/v4 a/b"),
    ],
)
def test_addresses(origin: str, api: str, expected: str) -> None:
    kind, base, path = expected.split()
    assert repository_of(origin, api=api) == Repository(kind=kind, api=base, path=path)


@pytest.mark.parametrize(
    ("origin", "api", "said"),
    [
        ("https://github.evil.example/desk/alpha", "", "neither github.com nor gitlab.com"),
        ("https://evil.example/desk/alpha", "https://api.github.com", "would be given the token"),
        ("https://github.com/desk/alpha", "https://lab.example/api/v4", "would be given the token"),
        ("https://github.com/desk", "", "names no repository"),
        ("https://github.com/desk/alpha/../../x", "", "no address of a repository"),
        ("https://github.com/desk/al pha", "", "no address of a repository"),
        ("https://github.com/desk/alpha?x=1#y", "https://ghe.example/", "neither GitHub's nor GitLab's"),
        ("/srv/git/alpha.git", "", "no address of a repository"),
        ("file:///srv/git/alpha.git", "", "no address of a repository"),
        ("", "", "no address of a repository"),
    ],
)
def test_refusals(origin: str, api: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        repository_of(origin, api=api)


def test_the_web_address_holds_no_password() -> None:
    assert web_address("https://user:pass@gitlab.com/a/b.git") == "https://gitlab.com/a/b"
    assert web_address("git@github.com:desk/alpha.git") == "https://github.com/desk/alpha"
    assert web_address("http://lab.example:8080/a/b") == "http://lab.example:8080/a/b"
    assert web_address("/srv/git") == ""
