"""From a cohort to a fit, and from a fit to a profile of every person."""
