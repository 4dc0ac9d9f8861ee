"""The pretend providers, one file each.

A provider is a function that takes the world and gives back its routes. To add one: write the file, and name
its function here. It parses its own wire format into an `Arrival`, calls `world.receive`, and answers through
`wire.act` in its own words; faults, ledger, conversations and the page then work for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from starlette.routing import BaseRoute

from tidings.sandbox.world import World

from . import (
    affinity,
    attio,
    discord,
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

Provider = Callable[[World], Sequence[BaseRoute]]

PROVIDERS: tuple[Provider, ...] = (
    phone.routes,
    telegram.routes,
    whatsapp_cloud.routes,
    twilio.routes,
    slack.routes,
    discord.routes,
    groupme.routes,
    waha.routes,
    gateway.routes,
    shift_calendar.routes,
    openai.routes,
    affinity.routes,
    attio.routes,
)
