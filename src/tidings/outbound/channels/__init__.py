"""Channels: one file per kind, registered in `registry`.

apprise: any service that Apprise supports.
base: the channel port, its traits and the optional protocols.
console: prints messages to standard output.
discord: Discord webhooks.
email: SMTP.
event_webhooks: the built-in channel `events`: signed webhooks to subscribers, a breaker for each.
groupme: GroupMe bots and accounts.
http: any HTTP API, by a request template.
long_text: splits or refuses texts that are too long for a provider.
noop: does nothing; for benchmarks and drills.
options: readers of channel options, and the description of a channel kind.
phone_number: E.164 phone numbers.
provider_api: calls a provider's HTTP API; checks provider-specific fields; maps errors to outcomes.
registry: builds a channel from its configuration; plugins by entry point.
sandbox: the simulated phone of the sandbox.
session: session status, and the protocols of channels that hold a session.
signing_secrets: webhook signing secrets, derived for each endpoint.
slack: Slack apps and incoming webhooks.
telegram: the Telegram Bot API.
twilio: SMS and WhatsApp through Twilio.
webhook: signed webhooks to the recipient's URL (Standard Webhooks).
whatsapp_cloud: WhatsApp through Meta's Cloud API.
whatsapp_session: WhatsApp through a linked device (WAHA or a plain gateway).
"""
