"""Files for other programs, made out of the record."""
