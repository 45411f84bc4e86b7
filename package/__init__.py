"""What belongs to a release: wheel and sdist, tried in clean environments from one end of Python to the other."""
