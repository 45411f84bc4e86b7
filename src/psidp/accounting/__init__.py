"""What composition costs, with proof. This floor knows events and curves, nothing of dice, ledgers or screens."""
