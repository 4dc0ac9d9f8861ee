"""Simulated providers, one module each.

A provider is a function `routes(world)`; most give a `ProviderMethod` for each route. To add one, write the
module and list it in `PROVIDERS`.

affinity: Affinity, versions 1 and 2, with quotas.
attio: Attio, with rate limits.
discord: Discord webhooks.
evolution: Evolution API (WhatsApp sessions).
gateway: an HTTP gateway in front of a WhatsApp session.
groupme: GroupMe bots, direct messages and groups.
openai: an OpenAI-compatible language model with scripted answers.
openai_models: which parameters OpenAI's model families accept.
phone: the plain phone with Tidings' own wire format.
shift_calendar: the shift calendar, with the faults of the real one.
slack: Slack's Web API and incoming webhooks.
smtp: the mail server.
telegram: the Telegram Bot API.
telegram_errors: its errors, by name.
twilio: Twilio messages.
waha: WAHA (WhatsApp sessions).
whatsapp_cloud: the WhatsApp Cloud API.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from starlette.routing import BaseRoute

from tidings.sandbox.simulator import SandboxSimulator

from . import (
    affinity,
    attio,
    discord,
    evolution,
    gateway,
    groupme,
    openai,
    phone,
    shift_calendar,
    slack,
    telegram,
    twilio,
    waha,
    whatsapp_cloud,
)

Provider = Callable[[SandboxSimulator], Sequence[BaseRoute]]

_CHATS = (phone, telegram, whatsapp_cloud, twilio, slack, discord, groupme, waha, gateway, evolution)
PROVIDERS: tuple[Provider, ...] = tuple(
    provider.routes for provider in (*_CHATS, shift_calendar, openai, affinity, attio)
)
