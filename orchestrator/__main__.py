"""``python -m orchestrator`` is ``foxrun``: so a pod's command runs in whatever interpreter started it."""

from orchestrator.cli.main import run

if __name__ == "__main__":
    run()
