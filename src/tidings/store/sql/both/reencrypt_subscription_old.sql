-- The secret before of a subscription under another key, unless somebody changed it meanwhile.
update subscriptions set old_secret = :value where id = :id and old_secret = :before returning id
