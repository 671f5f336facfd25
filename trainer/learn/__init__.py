"""Learning: replay, losses, optimiser, the step and the loops around it."""
