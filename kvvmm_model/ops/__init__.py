"""One file an operation: its refusals, its steps, its changes to the ledger, its unwinding."""
