"""Verdicts over time: one small file a completed workflow, listed by `foxrun history` and drawn as one page."""
