-- A kept message was worked through again. No row back: it is not kept any more.
update hearings set workflow = :workflow, decision = :decision, reason = :reason, held = :held, released_at = null, at = :at,
  facts = :facts
where message = :message and held is not null returning n
