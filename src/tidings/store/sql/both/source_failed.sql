-- It could not be read, or what came could not be written. Without a token: a call-back of it.
update sources set failures = failures + 1, problem = :problem
where name = :name and (cast(:token as bigint) is null or token = :token)
returning failures
