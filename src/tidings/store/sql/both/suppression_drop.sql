-- The way back: an address may be written to again.
delete from suppressions where tenant = :tenant and address = :address and channel = :channel returning address
