"""Programs to run as jobs: what they do is real, and they need no more than numpy."""
