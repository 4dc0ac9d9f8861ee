"""The HTTP API: parse, call one function, answer.

application: create_api: all routes behind the middleware.
audit_middleware: one audit entry for every request that changes something, whatever its result.
authorization: the access rule of a request, looked up in the routes.
bodies: JSON request bodies, JSON responses, and their OpenAPI declarations.
credentials: API key or session cookie of a request.
csv_export: CSV rows and headers, with protection against formula injection.
errors: the error envelope, Retry-After, and errors of the framework.
middleware: every request: id, host, CSRF, authentication, authorization, body limits, security headers.
migration_repairs: export of rejected migration records, and upload of repaired ones.
migration_streams: verification and undo of a migration as an NDJSON stream.
ndjson_streams: bulk requests: a stream of rows in, a stream of NDJSON results out.
openapi: openapi.json with the error envelope and the security schemes.
proxies: the client's address behind trusted proxies (X-Forwarded-For).
query_parameters: rejects unknown query parameters; the `after` cursor.
routes: the routes, one module per resource.
spool: buffer between a fast writer and a slow reader, in memory and then on disk.
"""

from .application import create_api

__all__ = ["create_api"]
