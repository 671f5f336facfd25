"""Where inputs and artifacts lie, by key."""
