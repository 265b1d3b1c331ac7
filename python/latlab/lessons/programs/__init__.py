"""What the lessons run: programs short enough to read, each of which also runs by itself."""
