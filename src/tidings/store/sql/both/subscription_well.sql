-- Its receiver takes events again.
update subscriptions set failing_since = null, problem = null where id = :id and failing_since is not null
