"""What each table of the comparison is made of."""
