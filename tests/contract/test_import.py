"""Importing the contract costs next to nothing and needs nothing but the standard library."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def loaded(code: str) -> set[str]:
    """The modules that are loaded after ``code``, in an interpreter without site-packages."""
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); {code}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_import_foxrun_loads_nothing_slow() -> None:
    modules = loaded("import foxrun")
    assert not modules & {"torch", "numpy", "zstandard", "dataclasses", "inspect", "json", "subprocess", "typing", "re"}


def test_everything_public_works_with_the_standard_library_alone() -> None:
    modules = loaded("import foxrun; [getattr(foxrun, name) for name in foxrun.__all__]; import foxrun.git")
    assert not modules & {"torch", "numpy", "zstandard"}


def test_the_function_is_not_hidden_by_the_module_of_its_name() -> None:
    code = "import foxrun.fingerprint; from foxrun.fingerprint import MASK; from foxrun import fingerprint"
    loaded(f"{code}; assert fingerprint(bytes(), 4) == 0xB7A4712C74562914")


def test_an_unknown_name_is_an_attribute_error() -> None:
    loaded("import foxrun; assert not hasattr(foxrun, 'nothing')")
