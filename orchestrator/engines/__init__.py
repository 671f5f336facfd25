"""Engines execute the same Workflow object: as local processes, or on a cluster."""
