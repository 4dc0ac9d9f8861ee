"""Secret references in settings: `env:NAME` and `file:/path` are replaced by the secret they refer to.

Secrets in clear text are allowed only in a configuration file that others on the machine cannot read.
"""

from __future__ import annotations

import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..model.errors import Misconfigured
from .secrets import MissingSecret, Secret, has_password, is_secret, is_template


class SecretReferences:
    """Resolves references and remembers which settings of the file hold a secret in clear text."""

    def __init__(self, environ: Mapping[str, str], path: Path | None, folder: Path) -> None:
        """`path` is the configuration file; relative `file:` references start in `folder`."""
        self._environ = environ
        self._path = path
        self._folder = folder
        self._in_clear: list[str] = []

    def resolve(self, raw: object, key: str, origin: str, *, secret: bool, may_be_missing: bool = False) -> Any:
        """Replace references by Secret, and wrap secrets in clear text so that they are not shown.

        One that is not set raises Misconfigured, or becomes a MissingSecret if it may be missing.
        """
        if isinstance(raw, list):
            return [self.resolve(entry, key, origin, secret=secret, may_be_missing=may_be_missing) for entry in raw]
        if isinstance(raw, dict):
            return {
                name: self.resolve(
                    entry, f"{key}.{name}", origin, secret=secret or is_secret(name), may_be_missing=may_be_missing
                )
                for name, entry in raw.items()
            }
        if not isinstance(raw, str) or not raw:
            return raw
        scheme, _, target = raw.partition(":")
        if scheme in ("env", "file") and target:
            read = self._from_environment if scheme == "env" else self._from_file
            try:
                return Secret(read(target, key, origin), raw)
            except Misconfigured as error:
                if not may_be_missing:
                    raise
                return MissingSecret(raw, error)
        secret = secret and not is_template(raw)
        if origin == str(self._path) and (secret or has_password(raw)):
            self._in_clear.append(key)
        return Secret(raw) if secret else raw

    def check_file_mode(self) -> None:
        """Raise Misconfigured if the file is world-readable and holds a secret in clear text."""
        if self._in_clear and self._path and self._path.stat().st_mode & stat.S_IROTH:
            problem = f"{self._path} is world-readable and holds {self._in_clear[0]} in clear text"
            remedy = f"Run: chmod 600 {self._path}, or give the secret as env:NAME or file:/path"
            raise Misconfigured(problem, remedy=remedy, field=self._in_clear[0])

    def _from_environment(self, variable: str, key: str, origin: str) -> str:
        if not self._environ.get(variable):
            problem = f"{key} in {origin} refers to the variable {variable}, which is not set"
            raise Misconfigured(problem, remedy=f"Set {variable} and start again", field=key)
        return self._environ[variable]

    def _from_file(self, target: str, key: str, origin: str) -> str:
        path = self._folder / target
        try:
            value = path.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "not a text"
            problem = f"{key} in {origin} refers to the file {path}, which cannot be read ({why})"
            raise Misconfigured(problem, remedy="Check the path and its permissions", field=key) from None
        if not value:
            problem = f"{key} in {origin} refers to the file {path}, which is empty"
            raise Misconfigured(problem, remedy="Write the secret into the file", field=key)
        return value
