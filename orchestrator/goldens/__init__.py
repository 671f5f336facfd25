"""Goldens: the bits that a configuration gave, kept in the repository, so that a change of bits needs a reason."""

# Of every golden's file name.
ENDING = ".golden.json"
