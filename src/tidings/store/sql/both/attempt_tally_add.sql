-- Counts of one settled batch; deltas, summed up later.
insert into attempt_tallies (at, queue, outcome, n, ms) values (coalesce(cast(:now as bigint), tidings_now()) / 60000000 * 60000000, :queue, :outcome, :n, :ms)
