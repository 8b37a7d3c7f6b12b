"""The two factors as likelihoods: choices given values, and effort given the moves described."""
