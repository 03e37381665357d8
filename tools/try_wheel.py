"""Build the wheel, install it into a fresh environment and run the first lines of the README there.

    python -m tools.try_wheel

Prints sizes and the seconds to the first tree: cold, with nothing compiled, and warm. Needs a network for pip.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
INSTALL = "pip install ."


def readme_lines() -> list[str]:
    """The first block of commands."""
    found = re.search(r"^```\n(.*?)^```", (PROJECT / "README.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return found[1].splitlines() if found else []


def main() -> None:
    """Build, install, run."""
    install, *others = readme_lines()
    if install != INSTALL:
        sys.exit(f"README.md: its first command is {install!r}, not {INSTALL!r}.")
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        subprocess.run([sys.executable, "-m", "venv", place / "env"], check=True)
        pip = [place / "env/bin/python", "-m", "pip", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "wheel", "--no-deps", "-w", place, PROJECT], check=True)
        [wheel] = place.glob("*.whl")
        subprocess.run([*pip, "install", "--constraint", PROJECT / "constraints.txt", wheel], check=True)
        bundled = next((place / "env").rglob("site-packages/ramify/bundled"))
        size = sum(file.stat().st_size for file in bundled.rglob("*") if file.is_file())
        print(f"wheel {wheel.stat().st_size / 1e6:.2f} MB, bundled models {size / 1e6:.2f} MB")
        path = f"{place / 'env/bin'}{os.pathsep}{os.environ['PATH']}"
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        environment |= {"PATH": path, "HOME": name, "XDG_CACHE_HOME": name}
        for line in others:
            print(f"$ {line}")
            for state in ("cold", "warm"):
                started = time.perf_counter()
                found = subprocess.run(line, shell=True, cwd=place, env=environment, check=True, stdout=subprocess.PIPE)
                print(f"{state}: {time.perf_counter() - started:.1f} s")
            print(found.stdout.decode())


if __name__ == "__main__":
    main()
