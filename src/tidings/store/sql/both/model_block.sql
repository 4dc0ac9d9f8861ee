-- Nobody calls this endpoint before an instant; a later parking wins.
update model_endpoints set blocked_until = :until, block_kind = :kind, block_reason = :reason
where name = :name and blocked_until < :until
