"""What devices this machine has, who is on them, and how they fare."""
