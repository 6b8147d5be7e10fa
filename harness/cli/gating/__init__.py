"""Commands of a gate, and what it is part of."""
