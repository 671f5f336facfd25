"""The command line, the engines, the comparison and the report."""
