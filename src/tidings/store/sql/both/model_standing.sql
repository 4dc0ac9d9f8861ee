-- Until when an endpoint is parked and why, and its next free instant.
select parked_until, park_kind, park_reason, next_at from model_endpoints where name = :endpoint
