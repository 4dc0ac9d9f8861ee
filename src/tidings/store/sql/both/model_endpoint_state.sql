-- Until when an endpoint is blocked and why, and its next free slot.
select blocked_until, block_kind, block_reason, next_at from model_endpoints where name = :endpoint
