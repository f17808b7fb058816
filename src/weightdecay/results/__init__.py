"""Records, wherever they come from, into numbers: landscapes, exponents, ties, curves."""
