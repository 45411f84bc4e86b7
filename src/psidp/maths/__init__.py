"""Pure functions of numbers: arrays in, arrays out. This floor knows no state, no clock, no dice and no files."""
