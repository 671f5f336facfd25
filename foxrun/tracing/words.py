"""What events say in words, and localize reads again: written once, for the traced process and for who reads it.

Standard library alone: the orchestrator has no torch.
"""

from __future__ import annotations

PAST = "writes past its memory"
PAST_VIEW = "writes past its view"  # which may be meant: the view's base goes on behind it
SURELY = f"{PAST}, surely"  # whatever the twins came to
HANDED_AGAIN = "memory handed over before"
ASKS = "its library asks the system for"
QUEUED = "multiprocessing.Queue.put"  # the name of an event, and no value
STILL_WRITTEN = "while it is open for writing"
ADDS = "its code adds atomically"
