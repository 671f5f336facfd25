"""A trainer that behaves as badly as `-p do=NAME` says; it writes no run directory."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path)
    parser.add_argument("--parameters", type=json.loads)
    options, _ = parser.parse_known_args()
    what, _, where = options.parameters["do"].partition(":")
    files = {"progress": "ARGO_PROGRESS_FILE", "message": "FOXRUN_TERMINATION_LOG"}
    if what == "fifo":
        os.mkfifo(os.environ[files[where]])
        sys.exit(3)
    if what == "endless":
        Path(os.environ[files[where]]).symlink_to("/dev/zero")
        sys.exit(3)
    if what == "negative":
        Path(os.environ[files["progress"]]).write_text("-3/-5")
        sys.exit(3)
    if what == "remove":
        shutil.rmtree(options.out)
    if what == "replace":
        options.out.rmdir()
        options.out.write_text("no directory")
    if what == "escape":
        Path(os.environ[files["message"]]).write_bytes(b"\x1b[2Jgone \xff\x9b")
        sys.exit(3)
    if what == "daemon":
        daemon(Path(where))
    if what == "endless-line":
        sys.stdout.write("x" * 300_000)
        sys.exit(3)


def daemon(pid_file: Path) -> None:
    if os.fork():
        return
    os.setsid()
    if (pid := os.fork()) != 0:
        with pid_file.open("a") as stream:
            stream.write(f"{pid}\n")
        os._exit(0)
    os.execvp("sleep", ["sleep", "120"])


if __name__ == "__main__":
    main()
