-- A kept message was edited: it will be worked through as it reads now. No row back: it is not kept any more.
update handled_messages set text = :text where message = :message and deferred is not null returning n
