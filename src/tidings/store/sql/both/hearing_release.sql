-- A kept message goes on. No row back: it went on already.
update hearings set released_at = :at where message = :message and held is not null and released_at is null returning n
