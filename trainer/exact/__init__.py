"""What makes a run exact: modes, counters, fingerprints, checkpoints, provenance."""
