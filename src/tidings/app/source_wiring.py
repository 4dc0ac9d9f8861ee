"""Wiring of sources, workflows with their interpreters, and the shift calendar."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from ..config import Settings
from ..inbound import ingestion, message_handler
from ..inbound.calendar.builtin import BuiltinCalendar
from ..inbound.calendar.http import HttpCalendar
from ..inbound.calendar.port import ShiftCalendar
from ..inbound.calendar.settings import CalendarSettings
from ..inbound.domain import IncomingMessage
from ..inbound.effects import ledger
from ..inbound.language.shift_words import DEFAULTS as SHIFTS
from ..inbound.service import InboundService, open_inbound
from ..inbound.sources.settings import SourceSettings
from ..inbound.webhooks import NumberLookup
from ..inbound.workflow import service as workflows
from ..inbound.workflow.settings import WorkflowSettings
from ..kernel.clock import Clock
from ..kernel.lanes import Lane
from ..model.errors import Misconfigured
from ..model.message import Draft
from ..model.task import NewTask
from ..observability.events import Emit
from ..outbound import message_validation
from ..outbound.channels.base import Channel, HasChats
from ..outbound.channels.session import KnowsNumbers
from ..outbound.messages import MessageService
from ..store.port import Store

_NO_REPLIES: Mapping[str, str] = MappingProxyType({})


def build_replies(accepting: MessageService, channels: Mapping[str, Channel], settings: Settings) -> OutboundReplyPort:
    """Build the port for replies; a source is answered on its own channel unless another is configured."""
    return OutboundReplyPort(accepting, channels, _workflow_settings(settings).replies)


def build_inbound(
    store: Store, clock: Clock, lanes: dict[str, Lane], replies: OutboundReplyPort, settings: Settings, emit: Emit
) -> InboundService:
    """Build the inbound service; it has a lane if there is a source."""
    chosen = settings.inbound
    if chosen.sources and ingestion.QUEUE in lanes:
        raise Misconfigured(f"the channel name {ingestion.QUEUE!r} is reserved", remedy="rename your channel")
    if chosen.sources:
        lanes[ingestion.QUEUE] = message_handler.lane()
    tell = workflows.source_notice_steps(_workflow_settings(settings), clock)
    return open_inbound(
        store, clock, chosen.sources, production=chosen.production, tell=tell, emit=emit, channels=replies
    )


def build_number_lookup(channels: Mapping[str, Channel]) -> NumberLookup:
    """Build the lookup of phone numbers behind linked ids, by the channel of the session."""

    async def number_of(channel: str, id_: str) -> str | None:
        session = channels.get(channel)
        return await session.number_of(id_) if isinstance(session, KnowsNumbers) else None

    return number_of


class OutboundReplyPort:
    """Sends replies and notices of inbound as outbound messages."""

    table: str = "messages"
    columns: tuple[str, ...] = message_validation.MESSAGE_COLUMNS

    def __init__(
        self, accepting: MessageService, channels: Mapping[str, Channel], replies: Mapping[str, str] = _NO_REPLIES
    ) -> None:
        self._messages = accepting
        self._channels = channels
        self._replies = replies

    async def prepare(
        self, channel: str, to: str, text: str, *, tenant: str, ordering_key: str, now: int, in_chat: bool = False
    ) -> tuple[NewTask, tuple[Any, ...]]:
        """Prepare one message for a transaction of inbound."""
        to = self._chat(channel, to) if in_chat else to
        draft = Draft(channel, to, text, tenant=tenant, ordering_key=ordering_key)
        return await self._messages.prepare(draft, now)

    def channel_of(self, source: SourceSettings) -> str | None:
        """Return the channel of replies to this source, if it is configured."""
        channel = self._replies.get(source.name, source.name)
        return channel if channel in self._channels else None

    def addresses_of(self, channel: str, incoming: IncomingMessage) -> Sequence[str]:
        """Return the sender's recipient on the channel, the user id, and the number of a WhatsApp session."""
        number, _, server = incoming.sender.partition("@")
        found = (self._chat(channel, incoming.sender), incoming.user_id, f"+{number}" if server == "c.us" else None)
        return [address for address in dict.fromkeys(found) if address]

    def _chat(self, channel: str, id_: str) -> str:
        chats = self._channels.get(channel)
        return chats.chat(id_) if isinstance(chats, HasChats) else id_


def _workflow_settings(settings: Settings) -> WorkflowSettings:
    """Return the workflow settings, with defaults from other settings."""
    chosen, shifts = settings.inbound.workflow or WorkflowSettings(), shift_settings(settings)
    own = {name: source.channel for name, source in settings.inbound.sources.items() if source.channel}
    return replace(
        chosen,
        replies={**own, **chosen.replies},
        timezone=chosen.timezone or settings.timezone.key,
        squads=chosen.squads or shifts.squads,
        calendar=shifts.name,
        grid=shifts.grid,
    )


def build_workflows(
    store: Store, clock: Clock, calendar: ShiftCalendar, replies: OutboundReplyPort, settings: Settings
) -> workflows.WorkflowService:
    """Build the workflows with the configured interpreter."""
    chosen, model = _workflow_settings(settings), settings.inbound.model
    for option, named in (
        ("admins", {admin.partition(":")[0] for admin in chosen.admins}),
        ("replies", {chosen.replies.get(source, source) for source in settings.inbound.sources}),
    ):
        if chosen.enabled and (unknown := sorted(named - set(settings.channels))):
            raise Misconfigured(
                f"inbound.{option} needs the channel {unknown[0]!r}, which is not configured",
                remedy=f"define [channels.{unknown[0]}], or use another one in inbound.{option}",
                field=f"inbound.{option}",
            )

    def interpreters() -> workflows.Interpreters:
        from ..inbound.language.rule_interpreter import RuleInterpreter
        from ..inbound.llm.factory import build_interpreter as build_mind
        from ..inbound.llm.prompt import load_prompts
        from ..inbound.llm.recordings import JournalPlayback, RecordedInterpreter

        rules = RuleInterpreter(chosen.shifts or None)
        if model is None:
            return workflows.Interpreters(rules, rules, rules)
        shifts = {**SHIFTS, **chosen.shifts}
        recorded = RecordedInterpreter(model, load_prompts(model.prompts), JournalPlayback(store, clock), shifts=shifts)
        return workflows.Interpreters(rules, build_mind(model, rules, store, clock, shifts=shifts), recorded)

    return workflows.build_workflow_service(chosen, store, clock, calendar, replies, interpreters)


def shift_settings(settings: Settings) -> CalendarSettings:
    """Return the configured calendar settings, or those of the built-in calendar."""
    if ledger.QUEUE in settings.channels:
        raise Misconfigured(f"the channel name {ledger.QUEUE!r} is reserved", remedy="rename your channel")
    return settings.inbound.calendar or CalendarSettings()


def build_calendar(chosen: CalendarSettings, store: Store, clock: Clock) -> ShiftCalendar:
    """Build the shift calendar that receives commands."""
    if chosen.kind == "http":
        return HttpCalendar(chosen, now=clock.now)
    return BuiltinCalendar(store, chosen.name)
