-- A subscription's secret under another key, unless somebody changed it meanwhile.
update subscriptions set secret = :value where id = :id and secret = :before returning id
