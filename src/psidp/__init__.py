"""psidp: Gaussian differential privacy through one number, the sensitivity index psi = Delta/sigma."""

__version__ = "0.1.0"
