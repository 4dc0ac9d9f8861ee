-- A kept message was worked through again. No row back: it is not kept any more.
update handled_messages set workflow = :workflow, decision = :decision, reason = :reason, deferred = :deferred, released_at = null, at = :at,
  facts = :facts
where message = :message and deferred is not null returning n
