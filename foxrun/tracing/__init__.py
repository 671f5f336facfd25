"""Inside a traced process: what a PyTorch program reads, draws and computes, as fingerprints, without a change of it.

``site/sitecustomize.py`` starts it where FOXRUN_TRACE names a plan. Nothing is imported that the program does not
import: torch and numpy are instrumented when the program imports them. docs/tracing.md says what is recorded.
"""
