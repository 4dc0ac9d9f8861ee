-- Where a source that has read nothing yet begins.
update sources set cursor = :cursor where name = :name and cursor is null returning name
