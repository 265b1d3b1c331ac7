"""What a notebook shows: runs, records, progress."""
