-- Forget old counts.
delete from tallies where at < :before
