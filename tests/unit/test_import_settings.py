"""The table [imports.NAME] of the settings file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidings.config import load
from tidings.model.errors import Misconfigured

GOOD = 'url = "mysql://root:s3cret@db/crm"\ntable = "jobs"\nmap = { to = "who", text = "\'hello\'" }\n'


def settings_file(folder: Path, text: str, mode: int = 0o600) -> Path:
    path = folder / "tidings.toml"
    path.write_text(f"[imports.old]\n{text}")
    path.chmod(mode)
    return path


def test_the_password_of_an_import_is_never_shown(tmp_path: Path) -> None:
    """Neither in the description nor in a repr; a file that others can read is refused."""
    settings = load(settings_file(tmp_path, GOOD), environ={})
    assert settings.describe()["imports"]["old"]["url"] == "mysql://root:***@db/crm"
    assert "s3cret" not in repr(settings) + repr(settings.imports)
    with pytest.raises(Misconfigured, match="world-readable"):
        load(settings_file(tmp_path, GOOD, 0o644), environ={})
    referred = load(
        settings_file(tmp_path, GOOD.replace("mysql://root:s3cret@db/crm", "env:OLD")), environ={"OLD": "x"}
    )
    assert (referred.imports["old"].url, referred.describe()["imports"]["old"]["url"]) == ("x", "env:OLD")


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ('tabel = "x"', "'imports.old.tabel'. Did you mean 'table'"),
        ('write_back = { stat = "x" }', "'imports.old.write_back.stat'. Did you mean 'status'"),
        ('words = { send = "x" }', "'imports.old.words.send'"),
        ("words = { sent = 1 }", "not a table of texts"),
        ("key = 5", "imports.old.key is not a text"),
        ('timezone = "Mars"', "unknown time zone 'Mars'"),
    ],
)
def test_a_wrong_option_of_an_import_is_named(tmp_path: Path, more: str, problem: str) -> None:
    """With a remedy, before anything starts."""
    with pytest.raises(Misconfigured) as refused:
        load(settings_file(tmp_path, GOOD + more), environ={})
    assert problem in str(refused.value)
    with pytest.raises(Misconfigured, match="needs url and map"):
        load(settings_file(tmp_path, 'url = "x"'), environ={})
