-- Forget the counts that tally_pack has summed up.
delete from attempt_tallies where not packed and at < :before
