"""Network protocols for channels, sources and servers.

http_client: HTTP client; tells whether a failed request may have left.
smtp_client: SMTP client; tells whether a failed mail may have been accepted.
mail: mail addresses and MIME messages (pure).
ssrf_guard: SSRF protection: checks URLs and every address they resolve to.
origin_checks: Host and Origin checks of our servers (DNS rebinding, cross-site requests) (pure).
connection_limits: limits on headers and connections of our servers.
webhook_signatures: signs and verifies webhooks (Standard Webhooks).
retry_after: parses the Retry-After header (pure).
file_locks: exclusive locks on open files, on POSIX and on Windows.
deadlines: request deadlines that survive a paused process.
placeholders: placeholders in URLs, headers and bodies (pure).
"""
