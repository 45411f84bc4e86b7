"""The explorer page and the JSON behind it. Stateless: it knows no ledger, keeps nothing, and answers to loopback."""
