-- Bring a retired template back.
update templates set gone_at = null, changed_at = :at
where id = :id and gone_at is not null
returning id
