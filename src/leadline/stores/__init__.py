"""The stores: the contract in `base`, one file a backend."""
