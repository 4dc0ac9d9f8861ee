"""Create, revise, retire, preview and list templates; fill drafts.

Versions are immutable: editing creates the next one. A message or broadcast uses a given version or the
newest, fixed from then on. Errors are raised when a template is saved, or before anything is sent.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Mapping
from datetime import UTC, tzinfo
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from ...inputs.fields import Field, check_fields
from ...inputs.pagination import Page, invalid_cursor, page_size
from ...kernel.clock import Clock
from ...model.errors import Conflict, Invalid, NotFound
from ...model.message import Draft
from ...model.time import iso
from ...store.port import IdempotencyRecord, Row, Step, Store, WriteConflict
from ..idempotency import KEEP_KEYS, CreateResult, create_once, find_replay, optional_key
from .depth_limit import check_depth
from .preview_contacts import contact_at_address, preview_contact
from .variables import MAX_TEXT_SIZE, DeclaredVariables, parse_declarations

if TYPE_CHECKING:
    from .renderer import CompiledTemplate

CONTENT_FIELDS: Mapping[str, Field] = {
    "text": Field("string", "message text with variables such as {{ name }}", "Hello {{ name }}"),
    "subject": Field("string", "subject line, for channels that support one; may contain variables"),
    "data": Field("object", "additional channel-specific fields; strings may contain variables"),
    "variables": Field("object", "declared variables: name to type, or to type, required, default and example"),
}
TEMPLATE_FIELDS: Mapping[str, Field] = {
    "name": Field("string", "template name: letters, digits, . _ and -", "welcome", required=True),
    **CONTENT_FIELDS,
}
SAMPLE_FIELDS: Mapping[str, Field] = {
    "variables": Field("object", "variable values; missing ones use their examples"),
    "contact": Field("object", "sample contact: name, zone, language, tags, attributes"),
    "channel": Field("string", "channel to escape values for; with `to`, use the contact with this address"),
    "to": Field("string", "the recipient's address", "ada"),
}
PREVIEW_FIELDS: Mapping[str, Field] = {
    "version": Field("integer", "template version (default: the newest)", 1),
    **SAMPLE_FIELDS,
}
UNSAVED_PREVIEW_FIELDS: Mapping[str, Field] = {
    "template": Field("object", "an unsaved template: text, subject, data, variables", required=True),
    **SAMPLE_FIELDS,
}
MAX_CACHED = 100  # compiled versions; they are immutable
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)


class TemplateVersion(NamedTuple):
    id: str
    version: int
    compiled: CompiledTemplate


TemplatesInUse = dict[tuple[str, str, int | None], TemplateVersion]  # by tenant, name and requested version


class TemplateService:
    """Template operations of the API, CLI, dashboard and senders."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        *,
        timezone: tzinfo = UTC,
        max_body: int = MAX_TEXT_SIZE,
        channels: Mapping[str, object] | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._zone = timezone
        self.channels = channels or {}  # values are escaped for them
        self._largest = min(max_body, MAX_TEXT_SIZE)
        self._compiled: OrderedDict[tuple[str, int], CompiledTemplate] = OrderedDict()

    # -- saving

    async def create(self, body: object, *, key: str | None = None, tenant: str = "default") -> CreateResult:
        """Create a template with version 1. Idempotent with a key."""
        id_, at = self._clock.new_id(), self._clock.now()
        repeat = self._once("templates", key, body, id_, tenant, at)
        done = await find_replay(self._store, repeat)
        if done is None:
            given = check_fields(body, TEMPLATE_FIELDS)
            name = _checked_name(given["name"])
            content, variables = _validated(given)
            if await self._store.read("template_find", place=name, tenant=tenant):
                raise _taken(name)
            steps = [
                Step("template_add", {"id": id_, "tenant": tenant, "name": name, "at": at}, needed=True),
                Step("template_version_add", _saved(id_, at, content, variables)),
            ]
            try:
                done = await create_once(self._store, steps, id_, repeat)
            except WriteConflict:
                raise _taken(name) from None
        return CreateResult(await self.show(done.answer, version=1, tenant=tenant), done.replayed)

    async def revise(self, name: str, body: object, *, key: str | None = None, tenant: str = "default") -> CreateResult:
        """Create the next version; earlier ones stay."""
        at = self._clock.now()
        found = await self._find(name, tenant)
        repeat = self._once(f"templates.{found['id']}", key, body, at, tenant, at)
        done = await find_replay(self._store, repeat)
        content, variables = _validated(check_fields(body, CONTENT_FIELDS))
        saved = _saved(found["id"], at, content, variables)
        if done is None:
            _refuse_retired(found)
            steps = [
                Step("template_advance", {"id": found["id"], "at": at}, needed=True),
                Step("template_version_add", saved),
            ]
            try:
                done = await create_once(self._store, steps, at, repeat)
            except WriteConflict:
                raise Conflict(f"{name!r} was retired meanwhile", remedy=_RESTORE.format(name)) from None
        made = {"template": found["id"], "content": content, "variables": variables, "at": done.answer}
        rows = await self._store.read("template_version_made", **made)
        return CreateResult(await self.show(name, version=rows[0]["version"], tenant=tenant), done.replayed)

    async def retire(self, name: str, *, tenant: str = "default") -> Row:
        """Retire a template: it can no longer be used, until restored."""
        return await self._turn("template_retire", name, tenant)

    async def restore(self, name: str, *, tenant: str = "default") -> Row:
        return await self._turn("template_restore", name, tenant)

    async def _turn(self, how: str, name: str, tenant: str) -> Row:
        found = await self._find(name, tenant)
        await self._store.write([Step(how, {"id": found["id"], "at": self._clock.now()})])
        return await self.show(name, tenant=tenant)

    def _once(
        self, scope: str, key: str | None, said: object, answer: object, tenant: str, now: int
    ) -> IdempotencyRecord | None:
        return optional_key(scope, key, said, answer, tenant=tenant, until=now + KEEP_KEYS)

    # -- finding

    async def show(self, name: str, *, version: int | None = None, tenant: str = "default") -> Row:
        """One template with the content of a version (default: the newest)."""
        found = await self._find(name, tenant)
        return {**_listed(found), **_said(await self._version(found, version))}

    async def page(
        self, *, retired: bool = False, limit: int = 50, after: str | None = None, tenant: str = "default"
    ) -> Page:
        """Templates by name."""
        page_size(limit)
        if after is not None and not _NAME.fullmatch(after):
            raise invalid_cursor(after)
        rows = await self._store.read("template_page", tenant=tenant, after=after or "", gone=int(retired), limit=limit)
        return Page([_listed(row) for row in rows], rows[-1]["name"] if len(rows) == limit else None)

    async def versions(self, name: str, *, limit: int = 50, after: str | None = None, tenant: str = "default") -> Page:
        """The versions of a template, newest first."""
        page_size(limit)
        found = await self._find(name, tenant)
        rows = await self._store.read("template_version_page", template=found["id"], before=_place(after), limit=limit)
        items = [{"id": found["id"], "name": found["name"], **_said(row)} for row in rows]
        return Page(items, str(rows[-1]["version"]) if len(rows) == limit else None)

    async def _find(self, name: str, tenant: str) -> Row:
        is_possible = _NAME.fullmatch(name) is not None
        rows = await self._store.read("template_find", place=name, tenant=tenant) if is_possible else []
        if not rows:
            raise NotFound(
                f"there is no template {name[:100]!r}", field="template", remedy="see: tidings templates list"
            )
        return rows[0]

    async def _version(self, found: Row, version: int | None) -> Row:
        wanted = found["version"] if version is None else version
        rows = (
            await self._store.read("template_version_find", template=found["id"], version=wanted)
            if 0 < wanted <= found["version"]
            else []
        )
        if not rows:
            raise NotFound(
                f"the template {found['name']!r} has no version {wanted}",
                field="version",
                remedy=f"use 1 to {found['version']}",
            )
        return rows[0]

    # -- using

    async def frozen(self, name: str, version: int | None = None, *, tenant: str = "default") -> TemplateVersion:
        """A compiled version by template name or id (default: the newest)."""
        found = await self._find(name, tenant)
        _refuse_retired(found)
        wanted = found["version"] if version is None else version
        known = self._compiled.get((found["id"], wanted))
        if known is None:
            row = await self._version(found, wanted)
            known = _compile(orjson.loads(row["content"]), parse_declarations(orjson.loads(row["variables"])))
            self._compiled[found["id"], wanted] = known
            if len(self._compiled) > MAX_CACHED:
                self._compiled.popitem(last=False)
        self._compiled.move_to_end((found["id"], wanted))
        return TemplateVersion(found["id"], wanted, known)

    async def fill(self, draft: Draft, known: TemplatesInUse | None = None) -> Draft:
        """The draft with its rendered content; raises Invalid for a missing variable.

        Drafts that share `known` get the same version of each template.
        """
        assert draft.template is not None
        place = draft.tenant, draft.template, draft.template_version
        known = {} if known is None else known
        if place not in known:
            known[place] = await self.frozen(draft.template, draft.template_version, tenant=draft.tenant)
        compiled = known[place].compiled
        who = draft.tenant, draft.channel, draft.to
        contact = await contact_at_address(self._store, *who) if compiled.uses_contact else None
        content = self._render(compiled, draft.variables or {}, contact, draft.to, draft.channel)
        return draft._replace(
            text=content.get("text", ""),
            subject=content.get("subject"),
            data=content.get("data"),
            template=None,
            template_version=None,
            variables=None,
        )

    def _render(
        self,
        compiled: CompiledTemplate,
        values: Mapping[str, Any],
        contact: Mapping[str, Any] | None,
        to: str,
        channel: str | None,
    ) -> dict[str, Any]:
        return compiled.render(
            values,
            contact=contact,
            recipient=to,
            timezone=self._zone,
            largest=self._largest,
            channel=self.channels.get(channel or ""),
        )

    # -- previews

    async def preview(self, name: str, body: object, *, tenant: str = "default") -> Row:
        """Render a version for a sample recipient without sending anything."""
        given = check_fields(body, PREVIEW_FIELDS)
        frozen = await self.frozen(name, given.get("version"), tenant=tenant)
        return {"version": frozen.version, **await self._preview(frozen.compiled, given, tenant)}

    async def trial(self, body: object, *, tenant: str = "default") -> Row:
        """Preview an unsaved template."""
        given = check_fields(body, UNSAVED_PREVIEW_FIELDS)
        content, variables = _validated(check_fields(given["template"], CONTENT_FIELDS))
        compiled = _compile(orjson.loads(content), parse_declarations(orjson.loads(variables)))
        return {"version": None, **await self._preview(compiled, given, tenant)}

    async def _preview(self, compiled: CompiledTemplate, given: Mapping[str, Any], tenant: str) -> Row:
        contact = await preview_contact(self._store, given, tenant)
        values, examples = compiled.declared.sampled(given.get("variables") or {})
        content = self._render(compiled, values, contact, given.get("to") or "", given.get("channel"))
        filled = {name: content.get(name) for name in ("text", "subject", "data")}
        return {**filled, "contact": dict(contact) if compiled.uses_contact else None, "examples": examples}


_RESTORE = "restore it: tidings templates restore {}"


def _compile(content: Mapping[str, Any], declared: DeclaredVariables) -> CompiledTemplate:
    """Compile a content; imports Jinja only here, because most processes need no templates."""
    from .renderer import compile_content

    return compile_content(content, declared)


def _validated(given: Mapping[str, Any]) -> tuple[str, str]:
    """The stored content and declarations; raises Invalid unless they compile together."""
    content = {name: given.get(name) for name in ("text", "subject", "data")}
    if not content["text"] and not content["data"]:
        raise Invalid("the template is empty", field="text", remedy="give a text, or data")
    check_depth(content["data"])
    declared = parse_declarations(given.get("variables"))
    _compile(content, declared)
    return orjson.dumps(content).decode(), orjson.dumps(declared.as_json()).decode()


def _saved(id_: str, at: int, content: str, variables: str) -> dict[str, Any]:
    return {"id": id_, "at": at, "content": content, "variables": variables}


def _checked_name(name: str) -> str:
    if not _NAME.fullmatch(name) or _ID.fullmatch(name):
        raise Invalid(
            f"{name[:100]!r} is not a valid template name",
            field="name",
            remedy="use 1 to 100 letters, digits, dots, - and _, such as welcome or rain-warning",
        )
    return name


def _refuse_retired(found: Row) -> None:
    if found["retired_at"] is not None:
        raise Conflict(
            f"the template {found['name']!r} is retired", field="template", remedy=_RESTORE.format(found["name"])
        )


def _taken(name: str) -> Conflict:
    return Conflict(
        f"the template {name[:100]!r} already exists",
        field="name",
        remedy=f"save a new version of it (tidings templates edit {name[:100]}), or use another name",
    )


def _place(after: str | None) -> int:
    if after is None:
        return (1 << 31) - 1
    if not after.isascii() or not after.isdigit() or len(after) > 9:
        raise invalid_cursor(after)
    return int(after)


def _listed(row: Row) -> Row:
    return {
        **{name: row[name] for name in ("id", "name", "version")},
        **{name: iso(row[name]) for name in ("created_at", "changed_at", "retired_at")},
    }


def _said(row: Row) -> Row:
    """A version row as API fields."""
    content = orjson.loads(row["content"])
    return {
        "version": row["version"],
        **{name: content.get(name) for name in ("text", "subject", "data")},
        "variables": orjson.loads(row["variables"]),
        "saved_at": iso(row["created_at"]),
    }
