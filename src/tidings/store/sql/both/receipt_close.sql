-- Nothing more is to be proved by this.
update receipts set open = false where channel = :channel and name = :name and open
