"""The report: one HTML file that shows a verdict, its evidence and what to do next."""

from orchestrator.report.html import render

__all__ = ["render"]
