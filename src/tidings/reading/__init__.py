"""Reading what people and programs write: times in words, zones, fields with their remedies, cursors."""
