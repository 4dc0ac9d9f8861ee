-- A kept message was edited: it will be worked through as it reads now. No row back: it is not kept any more.
update hearings set text = :text where message = :message and held is not null returning n
