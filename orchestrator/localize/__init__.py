"""From "they differ" to "this line, this cause, this remedy, verified": what `foxrun localize` does."""
