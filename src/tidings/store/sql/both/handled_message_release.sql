-- A kept message goes on. No row back: it went on already.
update handled_messages set released_at = :at where message = :message and deferred is not null and released_at is null returning n
