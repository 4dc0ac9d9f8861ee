-- How many members a list has, as far as it is counted.
select count(*) as n from (select 1 as one from list_members where list = :list limit :most) m
