-- Until when an endpoint is parked and why, and its next free instant.
select blocked_until, block_kind, block_reason, next_at from model_endpoints where name = :endpoint
