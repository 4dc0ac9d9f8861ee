"""Webhook subscriptions: create, edit, test and remove them; rotate their signing secrets.

A secret is generated here and shown only once. An inactive subscription gets no events, and queued ones are
skipped.
"""

from __future__ import annotations

import secrets
from base64 import b64encode
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import orjson

from ...inputs.fields import Field, check_fields
from ...inputs.pagination import Page, page_size
from ...kernel.clock import Clock
from ...model.errors import Conflict, Invalid, NotFound
from ...model.time import iso, micros
from ...store.encryption import Cipher, SecretLocation
from ...store.port import Row, Step, Store
from ...wire.ssrf_guard import ForbiddenUrl, SsrfRules, check_url
from ...wire.webhook_signatures import PREFIX
from ..idempotency import KEEP_KEYS, CreateResult, create_once, find_replay, optional_key
from . import event_types

SECRET_OVERLAP = timedelta(hours=24)  # how long the previous secret still signs

SUBSCRIPTION_FIELDS: Mapping[str, Field] = {
    "url": Field("string", "URL that events are posted to", "https://example.com/hooks", required=True),
    "events": Field("array", "event types, families such as message.*, or *", ["message.*"], required=True),
}
SUBSCRIPTION_CHANGES: Mapping[str, Field] = {
    "url": Field("string", "new URL", "https://example.com/hooks"),
    "events": Field("array", "new event types", ["message.failed", "broadcast.*"]),
    "active": Field("boolean", "whether it receives events", True),
}


def new_secret() -> str:
    """A signing secret of 32 random bytes."""
    return PREFIX + b64encode(secrets.token_bytes(32)).decode()


def secret_place(tenant: str, id_: str) -> SecretLocation:
    """Where the secrets of a subscription are stored."""
    return SecretLocation("subscriptions", tenant, id_)


class SubscriptionService:
    """Subscription operations; `rules` (SSRF) decide which addresses may be called."""

    def __init__(self, store: Store, clock: Clock, cipher: Cipher, rules: SsrfRules = SsrfRules()) -> None:
        self._store = store
        self._clock = clock
        self._cipher = cipher
        self._rules = rules

    async def add(self, body: object, *, key: str | None = None, tenant: str = "default") -> CreateResult:
        """Create a subscription with its secret; the same idempotency key and body return the same one."""
        id_ = self._clock.new_id()
        until = self._clock.now() + KEEP_KEYS
        once = optional_key("subscriptions", key, body, id_, tenant=tenant, until=until)
        earlier = await find_replay(self._store, once)
        if earlier is None:
            given = check_fields(body, SUBSCRIPTION_FIELDS)
            row = {
                "id": id_,
                "tenant": tenant,
                "url": self._url(given["url"]),
                "events": orjson.dumps(event_types.check_patterns(given["events"])).decode(),
                "secret": await self._cipher.encrypt(secret_place(tenant, id_), new_secret()),
            }
            earlier = await create_once(self._store, [Step("subscription_add", row)], id_, once)
        found = await self._find(earlier.answer, tenant)
        secret = self._cipher.decrypt(secret_place(tenant, found["id"]), found["secret"])
        return CreateResult({**serialize_subscription(found), "secret": secret}, earlier.replayed)

    async def page(self, *, tenant: str = "default", limit: int = 50, after: str | None = None) -> Page:
        """Subscriptions, newest first."""
        rows = await self._store.read("subscription_page", tenant=tenant, before=after, limit=page_size(limit))
        return Page([serialize_subscription(row) for row in rows], rows[-1]["id"] if len(rows) == limit else None)

    async def show(self, id_: str, *, tenant: str = "default") -> Row:
        """One subscription, without its secret."""
        return serialize_subscription(await self._find(id_, tenant))

    async def edit(self, id_: str, body: object, *, tenant: str = "default") -> Row:
        """Change URL, events or active state."""
        given = check_fields(body, SUBSCRIPTION_CHANGES)
        url, events = given.get("url"), given.get("events")
        change = {
            "url": None if url is None else self._url(url),
            "events": None if events is None else orjson.dumps(event_types.check_patterns(events)).decode(),
            "active": given.get("active"),
        }
        if all(value is None for value in change.values()):
            raise Invalid("no change is given", remedy=f"give one of: {', '.join(SUBSCRIPTION_CHANGES)}")
        await self._change(Step("subscription_edit", {"id": id_, "tenant": tenant, **change}), id_)
        return await self.show(id_, tenant=tenant)

    async def rotate(self, id_: str, *, tenant: str = "default") -> Row:
        """Rotate the secret and return the new one; for a day events are signed with both."""
        secret = new_secret()
        stored = await self._cipher.encrypt(secret_place(tenant, id_), secret)
        step = {"id": id_, "tenant": tenant, "secret": stored, "overlap": micros(SECRET_OVERLAP)}
        await self._change(Step("subscription_rotate", step), id_)
        return {**await self.show(id_, tenant=tenant), "secret": secret}

    async def test(self, id_: str, *, tenant: str = "default") -> Row:
        """Send a test event."""
        row = await self._find(id_, tenant)
        if not row["active"]:
            raise Conflict("the subscription is inactive", remedy=f"tidings subscriptions resume {id_}")
        body = {"subscription": id_, "text": "this is a test"}
        await self._store.write([event_types.outbox_step(event_types.TEST_EVENT, id_, body, tenant=tenant)])
        await self._store.hint()
        return serialize_subscription(row)

    async def remove(self, id_: str, *, tenant: str = "default") -> None:
        """Remove a subscription; its queued events are skipped."""
        await self._change(Step("subscription_remove", {"id": id_, "tenant": tenant}), id_)

    async def _change(self, step: Step, id_: str) -> None:
        if not (await self._store.write([step]))[0]:
            raise _missing(id_)
        await self._store.hint()

    async def _find(self, id_: str, tenant: str) -> Row:
        rows = await self._store.read("subscription_find", id=id_, tenant=tenant)
        if not rows:
            raise _missing(id_)
        return rows[0]

    def _url(self, url: str) -> str:
        try:
            check_url(url, self._rules)
        except ForbiddenUrl as error:
            raise Invalid(
                f"the URL is not allowed: {error}",
                field="url",
                remedy="use a public https URL; for development use the setting events_private",
            ) from error
        return url


def _missing(id_: str) -> NotFound:
    return NotFound(f"there is no subscription {id_[:60]}", remedy="see: tidings subscriptions list")


def serialize_subscription(row: Row) -> dict[str, Any]:
    """A subscription row as API fields, without secrets."""
    return {
        "id": row["id"],
        "url": row["url"],
        "events": orjson.loads(row["events"]),
        "active": bool(row["active"]),
        "failing_since": iso(row["failing_since"]),
        "problem": row["problem"],
        "created_at": iso(row["created_at"]),
        "changed_at": iso(row["changed_at"]),
    }
