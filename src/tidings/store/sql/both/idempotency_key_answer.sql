-- What is answered to a key from now on: the work that it began is done.
update idempotency_keys set answer = :answer where scope = :scope and key = :key
