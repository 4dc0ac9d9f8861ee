"""Sources of inbound messages, one file per kind.

api_client: GET requests to a platform's API, with Retry-After.
groupme: GroupMe groups, polled or by callback.
payload: tolerant access to the fields of a payload.
port: the ports of polled sources and webhook requests.
registry: the kinds of sources and what each can do.
settings: the settings tables [inbound.sources.NAME].
telegram: Telegram bots, polled or by webhook with a secret token.
waha: WhatsApp sessions through WAHA, by callback.
webhook: the generic source: a POST with a webhook signature (Standard Webhooks).
twilio: SMS and WhatsApp through Twilio, by callback.
whatsapp_cloud: WhatsApp Cloud, by callback.
"""
