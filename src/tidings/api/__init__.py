"""The HTTP API: parse, call one function, answer.

application: create_api: all routes behind the middleware.
audit_middleware: one audit entry for every request that changes something, whatever its result.
authentication: API key or session cookie of a request; its caller and client address.
authorization: the access rule of a request, looked up in the routes.
bodies: JSON request bodies and JSON responses.
body_limits: limits of request bodies in size (413) and time (408).
connect: compatibility with Rahat Connect (setting `compat`).
csrf: CSRF and DNS rebinding protection: Host and Origin checks.
csv_export: CSV rows and headers, with protection against formula injection.
errors: the error envelope, Retry-After, and errors of the framework.
metrics_application: metrics and health checks on a port of their own.
middleware: every request: id, security headers, and the order of all checks.
migration_repairs: export of rejected migration records, and upload of repaired ones.
migration_streams: verification and undo of a migration as an NDJSON stream.
ndjson_streams: bulk requests: a stream of rows in, a stream of NDJSON results out.
openapi: openapi.json with the error envelope and the security schemes.
openapi_responses: OpenAPI declarations of request bodies and responses.
proxies: the client's address behind trusted proxies (X-Forwarded-For).
query_parameters: rejects unknown query parameters; the `after` cursor.
routes: the routes, one module per resource.
spool: buffer between a fast writer and a slow reader, in memory and then on disk.
"""

from .application import create_api

__all__ = ["create_api"]
