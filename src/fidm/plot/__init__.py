"""Pictures. Each function takes a result and an optional ``ax``, returns the Axes, and computes nothing."""

from fidm.plot.maps import draw_map, routes, value_field

__all__ = ["draw_map", "routes", "value_field"]
