"""Servers that hold a WhatsApp session, one file per kind.

base: the channel through a session, its settings, and what all servers share.
evolution: Evolution API: instances, texts and media.
gateway: small services with GET /status and POST /send, as many wrap whatsapp-web.js.
waha: WAHA: sessions, texts, files, chat ids and lids.
"""
