"""What composition costs, with proof. This floor knows mechanisms and curves, and nothing of dice, ledgers or screens."""
