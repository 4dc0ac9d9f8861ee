"""How `make` installs its tools, and what workflows, images and the package pin and name."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

import tidings

from .wheel import ROOT

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")

# A Python whose venv and pip modules work or fail as the test asks; it writes down every call.
STUB = """#!/bin/sh
echo "python $*" >> "$CALLS"
case "$*" in
  "-m venv "*)
    [ -n "$HAS_VENV" ] || [ -e "$APT_DONE" ] || exit 1
    mkdir -p .tools/bin && cp "$0" .tools/bin/python ;;
  "-m pip --version") [ -n "$HAS_PIP" ] ;;
  "-m pip install"*) mkdir -p .tools/bin && touch .tools/bin/uv ;;
esac
"""
APT = """#!/bin/sh
echo "apt-get $*" >> "$CALLS"
[ -n "$HAS_APT" ] && touch "$APT_DONE"
"""
ROOT_ID = "#!/bin/sh\necho ${FAKE_UID}\n"


def make_uv(folder: Path, **has: str) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """Run the Makefile's rule for uv among the stubs; return the result and the calls made."""
    programs = folder / "bin"
    programs.mkdir()
    for name, text in {"python3": STUB, "apt-get": APT, "id": ROOT_ID}.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    shutil.copy(ROOT / "Makefile", folder)
    calls = folder / "calls"
    env = {
        "PATH": f"{programs}{os.pathsep}/usr/bin{os.pathsep}/bin",
        "CALLS": str(calls),
        "APT_DONE": str(folder / "apt-done"),
        "FAKE_UID": "1000",
        **has,
    }
    done = subprocess.run(
        ["make", ".tools/bin/uv", f"PYTHON={programs}/python3"],
        cwd=folder, env=env, check=False, capture_output=True, text=True,
    )  # fmt: skip
    return done, calls.read_text().splitlines()


def pinned() -> str:
    """Return the version of uv that the Makefile installs."""
    found = re.search(r"^UV_VERSION := (\d+\.\d+\.\d+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert found is not None
    return found[1]


def test_uv_is_installed_into_a_virtual_environment(tmp_path: Path) -> None:
    """The usual case: Python has venv and ensurepip."""
    done, calls = make_uv(tmp_path, HAS_VENV="1")

    assert done.returncode == 0, done.stderr
    assert calls[-1] == f"python -m pip install --quiet uv=={pinned()}"


def test_uv_is_installed_by_the_machines_pip_without_ensurepip(tmp_path: Path) -> None:
    """Debian's python3 with python3-pip but without python3-venv."""
    done, calls = make_uv(tmp_path, HAS_PIP="1", HAS_APT="1", FAKE_UID="0")

    assert done.returncode == 0, done.stderr
    assert calls[-1] == f"python -m pip install --quiet --target .tools uv=={pinned()}"
    assert not any(call.startswith("apt-get") for call in calls)


def test_root_gets_venv_from_the_system_where_python_has_neither(tmp_path: Path) -> None:
    """A plain Debian container."""
    done, calls = make_uv(tmp_path, HAS_APT="1", FAKE_UID="0")

    assert done.returncode == 0, done.stderr
    assert any(call.startswith("apt-get install") and call.endswith("python3-venv") for call in calls)
    assert calls[-1] == f"python -m pip install --quiet uv=={pinned()}"


def test_a_user_without_venv_and_pip_gets_the_remedy(tmp_path: Path) -> None:
    """Nothing is half installed, and the system is left alone."""
    done, calls = make_uv(tmp_path, HAS_APT="1")

    assert done.returncode != 0
    assert "Could not install uv" in done.stderr and "apt-get install python3-venv" in done.stderr
    assert not any(call.startswith("apt-get") for call in calls)
    assert not (tmp_path / ".tools").exists()


def test_the_image_is_built_with_the_same_uv() -> None:
    """One version in the Makefile and in the Dockerfile."""
    assert re.findall(r"uv==(\S+?)\"?$", (ROOT / "Dockerfile").read_text(), re.MULTILINE) == [pinned()]


def test_images_are_pinned_to_a_full_version() -> None:
    """A tag such as `17` or `slim` would change under a deployment."""
    images = re.findall(r"^FROM (\S+)", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    for path in (ROOT / "compose.yaml", ROOT / "deploy" / "compose.yaml"):
        services = yaml.safe_load(path.read_text())["services"].values()
        images += [service["image"] for service in services if "build" not in service]

    assert len(images) >= 4
    for image in images:
        assert re.search(r":v?\d+\.\d+", image), f"{image}: name the minor or patch version"


def test_actions_are_pinned_to_a_full_version() -> None:
    """And every workflow states its permissions, with none but reading by default."""
    workflows = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
    assert workflows
    for path in workflows:
        workflow = yaml.safe_load(path.read_text())
        steps = [step for job in workflow["jobs"].values() for step in job.get("steps", ())]
        assert workflow["permissions"] in ({}, {"contents": "read"}), path.name
        for used in (step["uses"] for step in steps if "uses" in step):
            assert re.search(r"@v\d+\.\d+\.\d+$", used), f"{path.name}: {used}"


def test_the_last_job_of_ci_waits_for_all_others() -> None:
    """A branch rule that requires `ci` therefore requires everything."""
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())["jobs"]

    assert set(jobs["ci"]["needs"]) == set(jobs) - {"ci"}
    assert jobs["ci"]["if"] == "always()"


def test_no_file_names_the_address_of_a_package_index() -> None:
    """Clients use the index they are configured for; only the lock file that uv writes records one."""
    hosts = ["pypi" + ".org", "files.python" + "hosted", "registry.npm" + "js", "deb.debian" + ".org"]
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, check=False, capture_output=True, text=True,
    )  # fmt: skip
    if listed.returncode:
        pytest.skip("not a git work tree")
    for name in set(listed.stdout.split("\0")) - {"", "uv.lock"}:
        path = ROOT / name
        text = path.read_bytes().decode(errors="ignore") if path.is_file() else ""
        assert not [host for host in hosts if host in text], name


def test_the_package_and_the_module_have_the_same_version() -> None:
    """And the changelog's newest section is that release, or what comes after it."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    newest = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)

    assert tidings.__version__ == version
    assert version in newest[:2] and newest[0] in (version, "Unreleased")
