-- It is over. No row back: somebody else was faster.
update alerts set state = 'resolved', resolved_at = :at where id = :id and state = 'raised' returning id
