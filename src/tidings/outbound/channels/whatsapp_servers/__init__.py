"""Servers that hold a WhatsApp session, one file per kind, behind one port.

evolution: Evolution API: instances, texts and media.
gateway: small services with GET /status and POST /send, as many wrap whatsapp-web.js.
port: the port, the settings of a session, and what all servers share.
waha: WAHA: sessions, texts, files, chat ids and lids.
"""
