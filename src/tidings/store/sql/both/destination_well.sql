-- A destination works again.
delete from destinations where queue = :queue and tenant = :tenant and host = :host
