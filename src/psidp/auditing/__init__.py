"""From attack scores back to psi. This floor knows samples and ranks, and nothing of ledgers or screens."""
