"""The simulator: the production scheduler under a virtual clock, in a model of the world."""
