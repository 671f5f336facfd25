"""GitHub and GitLab, which only this package talks to: commit statuses, and one comment in a pull or merge request."""
