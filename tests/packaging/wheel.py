"""Build the distribution, install the wheel into an empty environment, read its docs and send a first message with it.

Run it with `make wheel-check`. It works offline after `make sync`: the locked dependencies and the build
backend are then in uv's cache, and only what is missing there is downloaded.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "first-message" / "first_message.py"


def find_uv() -> str | None:
    """Return the uv on the PATH or the one that `make` installed, or None."""
    local = ROOT / ".tools" / "bin" / "uv"
    return shutil.which("uv") or (str(local) if local.exists() else None)


def build(uv: str, folder: Path, source: Path = ROOT) -> tuple[Path, Path]:
    """Build the sdist, then the wheel from the sdist; return the paths of both."""
    _run(uv, "build", "--quiet", "--out-dir", str(folder), str(source))
    (sdist,) = folder.glob("*.tar.gz")
    (wheel,) = folder.glob("*.whl")
    return sdist, wheel


def install(uv: str, wheel: Path, environment: Path) -> Path:
    """Install the wheel and its locked dependencies, nothing else; return the environment's Python.

    Raises CalledProcessError if the wheel's own metadata asks for something that is not installed.
    """
    python = environment / "bin" / "python"
    _run(uv, "sync", "--quiet", "--frozen", "--no-default-groups", "--no-install-project",
         "--project", str(ROOT), "--python", sys.executable, environment=environment)  # fmt: skip
    _run(uv, "pip", "install", "--quiet", "--no-deps", "--python", str(python), str(wheel))
    _run(uv, "pip", "check", "--quiet", "--python", str(python))
    return python


def send_first_message(python: Path, folder: Path) -> str:
    """Run a copy of the first-message example outside the source tree; return its output."""
    script = shutil.copy(EXAMPLE, folder)
    done = subprocess.run([python, script], cwd=folder, env=_clean(), check=True, text=True, stdout=subprocess.PIPE)
    return done.stdout


def read_docs(python: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the installed `tidings docs` outside the source tree, with pipes."""
    return subprocess.run(
        [python.with_name("tidings"), "docs", *words],
        cwd=folder,
        env=_clean(),
        capture_output=True,
        text=True,
        check=False,
    )


def _clean() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}


def _run(*command: str, environment: Path | None = None) -> None:
    """Run uv from its cache; if something is missing there, run it again with the network."""
    env = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    if environment is not None:
        env["UV_PROJECT_ENVIRONMENT"] = str(environment)
    cached = subprocess.run(command, env={**env, "UV_OFFLINE": "1"}, check=False, capture_output=True)
    if cached.returncode:
        subprocess.run(command, env=env, check=True)


def main() -> int:
    """Check the distribution; return the exit code."""
    uv = find_uv()
    if uv is None:
        print("uv is missing: run make sync", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="tidings-wheel-") as place:
        folder = Path(place)
        _, wheel = build(uv, folder / "dist")
        python = install(uv, wheel, folder / "environment")
        print(f"Installed {wheel.name} into an empty environment.")
        pages = read_docs(python, folder, "--json")
        pages.check_returncode()
        print(f"tidings docs lists {len(json.loads(pages.stdout)['items'])} pages.")
        print(send_first_message(python, folder), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
