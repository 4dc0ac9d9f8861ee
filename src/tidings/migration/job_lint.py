"""Reads the attributes of both systems and lints the job's map against them."""

from __future__ import annotations

from collections.abc import Sequence

from ..model.errors import Conflict
from .connector_pool import OpenedJob
from .connectors.port import Attribute, ConnectorError
from .mapping.lint import LintFinding, lint, observed_attributes


async def lint_job(opened: OpenedJob) -> list[LintFinding]:
    """Return the lint findings of a job; cached, since reading attributes costs calls."""
    if opened.findings is None:
        there: dict[str, Sequence[Attribute] | None] = {}
        here: dict[str, Sequence[Attribute] | None] = {}
        try:
            for one in opened.job.types:
                there[one.name] = await _attributes(opened, one.source)
                here[one.name] = await opened.target.attributes(one.target)
        except ConnectorError as error:
            problem = f"a system cannot be queried: {error.reason}"
            raise Conflict(problem, remedy="fix that, then try again") from None
        opened.findings = lint(opened.job.types, there, here)
    return opened.findings


async def _attributes(opened: OpenedJob, source: str) -> Sequence[Attribute] | None:
    """Return the source's attributes, or those that its first records show."""
    named = await opened.source.attributes(source)
    if named is not None:
        return named
    page = await opened.source.page(source, None)
    return observed_attributes(page.records) if page.records else None
