"""The local engine: one controller process a workflow executes its templates as processes."""

from orchestrator.engines.local.engine import LocalEngine
from orchestrator.engines.local.supported import unsupported
from orchestrator.engines.local.validate import validate

__all__ = ["LocalEngine", "unsupported", "validate"]
