-- Delete the counts of old days.
delete from daily_deliveries where day < :before
