"""What is shown of a run, a file for each question; `chapters` has them in the order of a page."""
