"""What everything is shown with: figures, tables, plots and prose, and how each medium draws them."""
