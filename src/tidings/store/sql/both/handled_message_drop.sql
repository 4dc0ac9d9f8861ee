-- A kept message that a person has dealt with, or that its sender deleted. No row back: it is not kept any more.
update handled_messages set deferred = null, decision = :decision, reason = :reason, at = :at
where message = :message and deferred is not null returning n
