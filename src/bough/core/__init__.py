"""The pure core: events in, commands out, with no clock, no files and no randomness."""
