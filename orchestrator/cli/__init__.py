"""The commands: each parses, calls, and prints. What they call knows nothing of click."""
