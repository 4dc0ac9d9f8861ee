"""Access control: authentication, authorization, tenancy, rate limits and the audit log.

api_keys: API keys: create, list, rotate with an overlap, revoke; only hashes are stored.
audit: the audit log: entries, masking of secrets, pages.
audit_chain: verification of the audit log's hash chain.
authentication: who the caller is: API key, browser session, or no-key mode on loopback.
caller: the current caller (principal) with role, tenant, scopes and rate.
failed_logins: rate limiting of failed logins by key prefix and by client address.
permissions: roles and permissions, and the access rule that every route declares (`@requires`).
rate_limits: calls per second of an API key, across all processes.
service: AccessService, which wires the parts together.
tenant_scope: fills in the caller's tenant for every call that takes one.
"""
