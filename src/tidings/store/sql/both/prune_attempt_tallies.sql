-- Forget old counts.
delete from attempt_tallies where at < :before
