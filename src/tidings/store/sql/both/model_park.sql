-- Nobody calls this endpoint before an instant; a later parking wins.
update model_endpoints set parked_until = :until, park_kind = :kind, park_reason = :reason
where name = :name and parked_until < :until
