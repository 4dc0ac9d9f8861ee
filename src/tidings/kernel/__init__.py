"""The durable queue: enqueue, claim, run, settle. It knows nothing about messages.

worker: one node's loops: join, heartbeat, reap, run, prune, leave.
runner: claims due tasks, runs them and settles their results.
node_context: what the parts of one node's runner share.
claim_backoff: random wait after a wake-up hint, so that nodes do not all claim at once (thundering herd).
claim_release: returns unused claims.
capacity: how many tasks a node may claim now, in total and per queue.
backpressure: rests between claims while the database is slow.
start_marks: loads claimed tasks and writes their start marks before anything is sent.
rate_limit_slots: waits for the send time that a rate limit has reserved.
executor: runs tasks in a fixed number of slots (concurrency).
attempts: one attempt; its outcome is always reported.
settler: writes results in batches.
decisions: what an outcome means for its task and channel (pure).
quarantine: isolates and quarantines poison tasks, which kill their nodes (pure).
retry: retry policies, backoff, jitter and Retry-After (pure).
breaker: the circuit breaker of a channel (pure).
receiver_breakers: circuit breakers of many receivers within one process.
channel_states: cached state of the channels; breaker probes and breaker updates.
lanes: rules of one queue: retry policy, deadline, concurrency, rate limit, breaker.
handler: the interface of a task kind.
actor: the interface of a background job.
task_actions: cancel, retry, reschedule and expire tasks; record evidence of sending.
heartbeats: node registration, heartbeats and leases; detects silent nodes and database rewinds.
failover: recovery after a failover or restore that lost committed data.
reaper: declares silent nodes dead and recovers their tasks.
expirer: expires overdue tasks of channels that stand still.
pruner: deletes old tasks, history and nodes.
retention: deletes old rows of a domain.
clock: time, randomness and ids; clock drift.
clock_changes: moves computed times after the clock was set back.
crash_points: named points at which tests and drills kill the process.
gc_tuning: garbage collector settings of a worker process.
"""
