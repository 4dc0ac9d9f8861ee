-- Take contacts off a list.
-- Own file: a list goes in as JSON, which each database reads in its own way.
delete from list_members where list = :list and contact in (select value from json_each(:ids)) returning contact
