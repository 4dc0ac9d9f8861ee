"""Validate channel, content, template and webhook of a broadcast before anything is written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from zoneinfo import ZoneInfo

from ...model.broadcast import BroadcastState, load_broadcast_options
from ...model.errors import Invalid
from ...store.port import Row
from ...wire.ssrf_guard import ForbiddenUrl, SsrfRules, check_url
from ..channels.base import Channel
from ..events.event_types import EVENTS_CHANNEL as EVENTS
from ..message_validation import MessageLimits, check_not_past, check_size, encode_content
from ..templates.service import TemplateService
from .recipient_loader import BroadcastContent
from .request_parser import BroadcastRequest


class ValidatedBroadcast(NamedTuple):
    """A request with its channel, content and row."""

    plan: BroadcastRequest
    channel: Channel
    wording: BroadcastContent
    row: Row  # to be written


class BroadcastValidator:
    """Validates requests against channels, templates and limits."""

    def __init__(
        self, channels: Mapping[str, Channel], templates: TemplateService, rules: MessageLimits, webhooks: SsrfRules
    ) -> None:
        self._channels = channels
        self._templates = templates
        self._rules = rules
        self._webhooks = webhooks

    async def ready(self, plan: BroadcastRequest, id_: str, now: int, tenant: str) -> ValidatedBroadcast:
        """Validate a request and build its row; writes nothing."""
        channel = self.channel(plan.channel)
        self._rules.tenants.check_channel(tenant, plan.channel)
        if plan.scheduled_at is not None and plan.refuses_past:
            check_not_past(plan.scheduled_at, now)
        if plan.options.webhook is not None:
            self._check_webhook(plan.options.webhook)
        template: str | None = None
        version: int | None = None
        content = ""
        if plan.content is not None:
            content = encode_content(plan.content)
            check_size(content, self._rules.max_body)
        else:
            assert plan.template is not None
            frozen = await self._templates.frozen(plan.template, plan.template_version, tenant=tenant)
            template, version = frozen.id, frozen.version
        row: Row = {
            **dict.fromkeys(("group_id", "reason", "frozen_at", "started_at", "paused_at", "ended_at")),
            **dict.fromkeys(("check_at", "schedule", "occurrence")),
            **dict.fromkeys(("total", "duplicates", "refused", "lines"), 0),
            "id": id_, "tenant": tenant, "name": plan.name, "channel": plan.channel, "xref": plan.xref,
            "state": BroadcastState.LOADING.value, "starts": plan.starts.value, "content": content,
            "template": template, "template_version": version, "options": plan.options.to_json(),
            "accepted_at": now, "scheduled_at": plan.scheduled_at, "gate": plan.options.canary,
            "retry_in": plan.retry_in, "digest": "",
        }  # fmt: skip
        return ValidatedBroadcast(plan, channel, await self.wording(row), row)

    async def wording(self, row: Row) -> BroadcastContent:
        """The content of a stored broadcast."""
        if row["template"] is None:
            return BroadcastContent(row["content"])
        frozen = await self._templates.frozen(row["template"], row["template_version"], tenant=row["tenant"])
        options = load_broadcast_options(row["options"])
        return BroadcastContent(
            "",
            frozen.compiled,
            options.variables or {},
            ZoneInfo(options.timezone),
            self._rules.max_body,
            self._channels.get(row["channel"]),
        )

    def channel(self, name: str) -> Channel:
        """The channel of this name; raises Invalid."""
        channel = self._channels.get(name)
        if channel is None or name == EVENTS:
            known = ", ".join(sorted(set(self._channels) - {EVENTS})) or "none"
            raise Invalid(f"there is no channel {name[:60]!r}", field="channel", remedy=f"configured channels: {known}")
        return channel

    def _check_webhook(self, url: str) -> None:
        try:
            check_url(url, self._webhooks)
        except ForbiddenUrl as error:
            raise Invalid(
                f"the webhook URL is not allowed: {error}",
                field="webhook",
                remedy="use a public https URL; for development use the setting events_private",
            ) from error
