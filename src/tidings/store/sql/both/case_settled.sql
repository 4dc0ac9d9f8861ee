-- What a person was called for was settled by those who asked, before anybody took it.
update cases set state = 'closed', deadline_at = null, changed_at = :at, closed_at = :at
where tenant = :tenant and key = :key and state = 'open' returning id
