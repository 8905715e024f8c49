"""Citations: reading the marks of an answer and checking each sentence against the place it cites. Pure functions."""
