"""Systems that records come from and go to, one file each; `registry` makes them from a job's tables."""
