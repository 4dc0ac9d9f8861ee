-- All that a key has opened.
delete from sessions where owner = :owner
