-- The end of a message, in the transaction of what came of it. No row back: it had ended before.
update inbox set ended = :ended, reason = :reason where n = :n and ended is null returning n
