"""One lesson a file."""
