"""What a job may access: files, databases, secrets and the hosts that receive them (SSRF protection).

A job file on the command line has the operator's rights: any path, any `env:` or `file:` reference. A job
from the API may use files in its tenant's folder if a setting allows it, secrets that the configuration names
(`credential:NAME`) for the hosts listed there, and public https addresses unless a setting allows private
networks. No job may call the metadata services of clouds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ..model.errors import Invalid, Misconfigured
from ..wire.ssrf_guard import ForbiddenUrl, SsrfRules, check_url
from .connectors import registry
from .connectors.options import UNCONFINED, Confinement, Connector, ConnectorReach
from .credentials import Credential, CredentialLookup, is_reference, resolve_references
from .job_file import MigrationJob, SystemConfig


@dataclass(frozen=True, slots=True)
class JobPermissions:
    """What the configuration allows jobs."""

    folder: Path = Path("data/migrations")  # for jobs from the API
    files: bool = False
    credentials: Mapping[str, Credential] = field(default_factory=dict, repr=False)
    private: bool = False  # allow private networks and http

    def check(self, job: MigrationJob) -> None:
        """Raise Invalid if a job from the API would access more than it may."""
        if job.is_local:
            return
        for side, system in (("source", job.source), ("target", job.target)):
            known = registry.connector(system.kind, place=side)
            self._check_kind(side, system, known)
            references = [(place, text) for place, text in _texts(system.options, side) if is_reference(text)]
            for place, reference in references:
                self._check_reference(place, reference, known)
            if known.reach is not ConnectorReach.DATABASE:
                settings = self._settings(job, side, system)
                self._check_hosts(side, known, settings, {text.partition(":")[2] for _, text in references})
                _check_addresses(side, _urls(known, settings), self.confinement(job).rules or SsrfRules())

    def checked(self, job: MigrationJob, before: MigrationJob) -> MigrationJob:
        """Check a repaired map; with unchanged systems it keeps its access. Raises Invalid."""
        if not job.is_local and (job.source, job.target) == (before.source, before.target):
            return replace(job, is_local=before.is_local)
        self.check(job)
        return job

    def options(self, job: MigrationJob, side: str, *, environ: Mapping[str, str], folder: Path) -> Mapping[str, Any]:
        """Return the options of one side with references resolved; raises Misconfigured."""
        system: SystemConfig = getattr(job, side)
        if job.is_local:
            return resolve_references(system.options, side, self._lookup()._replace(environ=environ, folder=folder))
        try:
            self.check(job)  # again: the settings may have become stricter
        except Invalid as error:
            raise Misconfigured(error.problem, remedy=error.remedy, field=error.field) from None
        return resolve_references(system.options, side, self._lookup())

    def confinement(self, job: MigrationJob) -> Confinement:
        """Return the job's folder and the addresses it may call."""
        rules = SsrfRules(allow_private=self.private, allow_http=self.private)
        return UNCONFINED if job.is_local else Confinement(self.folder / job.tenant, rules)

    def _lookup(self) -> CredentialLookup:
        return CredentialLookup({name: one.value for name, one in self.credentials.items()})

    def _check_kind(self, side: str, system: SystemConfig, known: Connector) -> None:
        match known.reach:
            case ConnectorReach.NETWORK if hasattr(known.settings, "rules"):
                return
            case ConnectorReach.FOLDER if self.files:
                return
            case ConnectorReach.FOLDER:
                remedy = "set migration_api_files = true, or run: tidings migrate create FILE"
            case ConnectorReach.DATABASE if str(system.options.get("url", "")).startswith("credential:"):
                return
            case ConnectorReach.DATABASE:
                remedy = 'add [credentials.NAME] to the configuration, and write url = "credential:NAME"'
            case _:
                remedy = "create the job on the command line: tidings migrate create FILE"
        problem = f"{side}.kind is {system.kind!r}, which jobs from the API may not use"
        raise Invalid(problem, field=f"{side}.kind", remedy=remedy)

    def _check_reference(self, place: str, reference: str, known: Connector) -> None:
        scheme, _, name = reference.partition(":")
        remedy = 'add [credentials.NAME] to the configuration, and write "credential:NAME"'
        if scheme != "credential":
            problem = f"{place} is a reference to {scheme}:, which jobs from the API may not use"
            raise Invalid(problem, field=place, remedy=remedy)
        if name not in self.credentials:
            problem = f"{place} names the credential {name[:60]!r}, which is not configured"
            raise Invalid(problem, field=place, remedy=remedy)
        option = place.split(".")[1]
        is_url = known.reach is ConnectorReach.DATABASE and option == "url"
        if not is_url and option not in (*known.secrets, "headers"):
            allowed = ", ".join(sorted({*known.secrets, "headers"} & set(known.options)))
            raise Invalid(f"{place} accepts no credential", field=place, remedy=f"use it in: {allowed}")
        if is_url and self.credentials[name].hosts:
            remedy = f"leave out credentials.{name}.hosts"
            raise Invalid(f"{place} names a credential for an HTTP API", field=place, remedy=remedy)

    def _settings(self, job: MigrationJob, side: str, system: SystemConfig) -> Any:
        """Return the connector's settings; invalid options are reported now, not when the job runs."""
        try:
            options = resolve_references(system.options, side, self._lookup())
            return registry.settings_of(side, system.kind, options, within=self.confinement(job))[1]
        except Misconfigured as error:
            place = f"{side}.{error.field}" if error.field else side
            raise Invalid(error.problem, field=place, remedy=error.remedy) from None

    def _check_hosts(self, side: str, known: Connector, settings: Any, used: set[str]) -> None:
        """Allow a credential only for its own hosts, whatever URL the job names."""
        for name in sorted(used):
            hosts = {urlsplit(url).netloc.lower() for _, url in _urls(known, settings)}
            if other := sorted((hosts or {"an unknown host"}) - self.credentials[name].hosts):
                problem = f"{side} would send the credential {name!r} to {other[0][:100]!r}"
                remedy = f"add the host to credentials.{name}.hosts in the configuration, or correct the URL"
                raise Invalid(problem, field=f"{side}.url", remedy=remedy)


def _check_addresses(side: str, urls: Iterable[tuple[str, str]], rules: SsrfRules) -> None:
    """Reject URLs that can never be called; host names are resolved at call time."""
    for option, url in urls:
        try:
            check_url("{0.scheme}://{0.netloc}".format(urlsplit(url)), rules)
        except ForbiddenUrl as error:
            problem = f"{side}.{option} cannot be called: {error}"
            remedy = "use a public https URL, or set migration_api_private = true"
            raise Invalid(problem, field=f"{side}.{option}", remedy=remedy) from None


def _urls(known: Connector, settings: Any) -> list[tuple[str, str]]:
    """Return the URLs a connector calls: the option `url`, and options ending in `_url`."""
    names = [option for option in known.options if option == "url" or option.endswith("_url")]
    return [(name, str(getattr(settings, name))) for name in names if getattr(settings, name)]


def _texts(value: Any, place: str) -> Iterator[tuple[str, str]]:
    """Yield every text of an option with its place."""
    if isinstance(value, Mapping):
        for name, entry in value.items():
            yield from _texts(entry, f"{place}.{name}")
    elif isinstance(value, list | tuple):
        for entry in value:
            yield from _texts(entry, place)
    elif isinstance(value, str):
        yield place, value
