"""The reference trainer: an agent on limit-order-book data that writes a run directory."""
