-- A kept message that a person has dealt with.
update hearings set held = null, decision = 'by_hand', reason = :reason, at = :at
where message = :message and held is not null returning n
