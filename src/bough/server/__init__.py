"""The daemon: it hears of everything, decides by the core, writes it down, and has it done."""
