"""The privacy loss distribution (PLD): losses on a grid, composed by FFT, with a proved bound on each side."""
