-- A kept message that a person has dealt with, or that its sender deleted. No row back: it is not kept any more.
update hearings set held = null, decision = :decision, reason = :reason, at = :at
where message = :message and held is not null returning n
