-- Forget the counts that tally_pack has summed up.
delete from tallies where not packed and at < :before
