-- Signed out.
delete from sessions where digest = :digest
