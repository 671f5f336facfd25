"""The limit-order-book simulator that environments trade in."""
