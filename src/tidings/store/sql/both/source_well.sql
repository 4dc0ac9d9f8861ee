-- It works again; mostly there is nothing to change.
update sources set failures = 0, problem = null where name = :name and failures > 0
