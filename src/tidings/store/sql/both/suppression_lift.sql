-- A person wants messages again: opt-outs by the person or the provider end, those that an operator entered stay.
delete from suppressions where tenant = :tenant and address = :address and channel = :channel and evidence is not null
returning address
