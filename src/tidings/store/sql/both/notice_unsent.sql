-- Notices not yet sent to admins, oldest first.
select id, tenant, key, reason, at, facts from notices where sent_at is null order by id limit :limit
