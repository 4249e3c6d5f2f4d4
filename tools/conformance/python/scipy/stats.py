"""The straight line through points, by Python's own least squares."""

import statistics


def linregress(x, y):
    """As SciPy's; whoever asks here takes the slope alone."""
    slope, intercept = statistics.linear_regression(x, y)
    return slope, intercept, None, None, None
