"""One file for everything that is shown of one topic."""
