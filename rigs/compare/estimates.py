# SPDX-License-Identifier: MIT OR Apache-2.0
"""Percentiles of a run; means and ratios over seeds with their 95% confidence intervals."""

import math

# Two-sided 95% quantiles of Student's t by degrees of freedom; beyond the table the last one, which is at most 4% too large.
T_95 = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
]


def percentile(values, share):
    """Nearest rank; unfinished flows (None) are the slowest, and a percentile among them is None."""
    order = sorted(math.inf if value is None else value for value in values)
    if not order:
        return None
    value = order[max(0, math.ceil(share * len(order)) - 1)]
    return None if value == math.inf else value


def interval(values):
    """Mean and half of its 95% confidence interval over seeds; None among the values makes it None."""
    if not values or any(value is None for value in values):
        return None, None
    mean = sum(values) / len(values)
    if len(values) == 1:
        return mean, None
    variance = sum((value - mean) ** 2 for value in values) / (len(values) - 1)
    quantile = T_95[min(len(values) - 1, len(T_95)) - 1]
    return mean, quantile * math.sqrt(variance / len(values))


def ratio(reals, simulateds):
    """Real over simulated, seed by seed, as both have the same flows: geometric mean and its 95% confidence interval."""
    pairs = list(zip(reals, simulateds))
    if not pairs or any(r is None or s is None or r <= 0 or s <= 0 for r, s in pairs):
        return None
    mean, half = interval([math.log(r / s) for r, s in pairs])
    half = half or 0.0
    return math.exp(mean), math.exp(mean - half), math.exp(mean + half)
