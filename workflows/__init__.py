"""Argo Workflows as pure functions: RunParameters in, a Hera Workflow out.

No clock, no environment, no network, no global state: equal parameters give equal YAML (tests/workflows/golden).
"""
