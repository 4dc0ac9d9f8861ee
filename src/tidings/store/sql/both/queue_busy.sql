-- The queues of which something is at work; found by what nodes hold, which is little.
select distinct queue from tasks where node > 0 and state = 'processing'
