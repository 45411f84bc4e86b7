"""Pure functions of numbers: arrays in, arrays out. This floor knows no state, no clock, no randomness and no files."""
