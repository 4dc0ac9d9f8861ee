-- Counts of one settled batch; deltas, summed up later.
insert into tallies (at, queue, what, n, ms) values (coalesce(cast(:now as bigint), tidings_now()) / 60000000 * 60000000, :queue, :what, :n, :ms)
