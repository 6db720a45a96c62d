r"""How many labels are right: what real crowds tell, and known labels.

The mean probability of the labels is the expected accuracy, if workers err independently of each other. Real workers
share errors, so fewer labels are right. `PAIRS` holds what was expected and what was true on real crowds. With x the
logit of the expected error and y that of the true one, a straight line is fitted to the pairs:

    y = a + b x,    s^2 = sum of squared residuals / (n - 2)

The true error of another crowd, whose expected error has the logit x, has a t distribution with n - 2 degrees of
freedom around the line, in the logit, with the scale

    s sqrt(1 + 1 / n + (x - mean)^2 / S),    S = sum of (x_i - mean)^2

The expected accuracy of a crowd counts as at most the highest of these.

Of n known labels of items drawn at random, k are those that the model gives if it does not know them. They multiply the
density by

    (1 - e)^k e^(n - k),    e = 1 / (1 + exp(-y))

What is reported are the median, and the quantiles of 5% and 95%. They are found on a grid of logits.

**Chance.** All this is about how often a label is wrong. Of N labels, the share that is wrong differs from that by
chance: its logit has a variance of about 1 / (N e (1 - e) + 1/4), here with e at each end. The distances of the ends
from the median, in the logit, are made longer by that, as those of a sum of two independent numbers, and the ends are
whole labels.

**The upper end.** Some crowds do err independently, simulated ones among them. Then the logit of the true error is near
x. So the upper end is the larger one of two: that of the density above, and that of a mixture, in which a normal
density around x has the weight `INDEPENDENT_SHARE` before known labels are seen. Its standard deviation is
`INDEPENDENT_SPREAD`, or half of the distance to the upper end of the interval under independence, if that is more: with
few answers it is. Median and lower end come from the first.

**Without a record.** Known labels alone tell how many labels are right by a Jeffreys interval: the density of the error
e is proportional to e^(n - k - 1/2) (1 - e)^(k - 1/2).

**What more labels would bring.** n further labels would make k right with the probability that the density gives, and
each k a range. The mean of their widths is reported.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from typing import TypeAlias

import numpy as np
from scipy.special import comb, expit, logit

from ..kernels import Floats

# Expected and true accuracy of real crowds, by confusion matrices and without known labels. benchmarks/record.py makes
# those of crowds that are free to use, which have names; the others are as measured.
Pairs: TypeAlias = Mapping[str, tuple[float, float]]
PAIRS: Pairs = {
    "bluebird": (0.9312, 0.8981),
    "rte": (0.9572, 0.9313),
    "dog": (0.9308, 0.8377),
    "web": (0.7931, 0.7878),
    "product": (0.9668, 0.9371),
    "llm_judges": (0.9431, 0.8210),
    "sentence_polarity": (0.9615, 0.9144),
    "music": (0.8472, 0.7814),
    "other 1": (0.976, 0.960),
    "other 2": (0.713, 0.614),
    "other 3": (0.867, 0.751),
    "other 4": (0.902, 0.644),
    "other 5": (0.968, 0.600),
    "other 6": (0.841, 0.709),
    "other 7": (0.976, 0.877),
    "other 8": (0.909, 0.893),
    "other 9": (0.907, 0.853),
    "other 10": (0.978, 0.944),
    "other 11": (0.951, 0.821),
    "other 12": (0.889, 0.765),
    "other 13": (0.939, 0.702),
    "other 14": (0.673, 0.639),
    "other 15": (0.937, 0.788),
}
# What they say of expectations, on average.
_EXPECTED, _TRUE = np.mean(list(PAIRS.values()), axis=0)
SHARED_ERRORS = (
    f"Real workers share errors: on {len(PAIRS)} real crowds {1 - _EXPECTED:.0%} of the labels were expected to be "
    f"wrong, and {1 - _TRUE:.0%} were."
)
# Logits of errors: from one in a million to all but one in three thousand.
LOGITS = np.linspace(-14.0, 8.0, 2201)
# How probable a crowd is that errs independently, and the standard deviation of the logit of its error around what is
# expected. Not probable: it is there for the upper end.
INDEPENDENT_SHARE, INDEPENDENT_SPREAD = 0.3, 0.3
# Ends and middle of a range.
QUANTILES = (0.05, 0.5, 0.95)
# The quantile of 95 % of a standard normal distribution.
NORMAL_90 = 1.6448536269514722
# With fewer known labels than this, they alone tell nothing.
LEAST_KNOWN_ALONE = 10


@cache
def fit_line(pairs: tuple[tuple[float, float], ...]) -> tuple[float, float, float, float, float, float, int]:
    """The line through the logits x and y of expected and true errors of some crowds.

    Returned are its start and slope, the standard deviation of the residuals, the mean of x, the sum of squares around
    it, the least x, and the number of crowds.
    """
    x, y = -logit(np.array(pairs)).T
    mean, squares = x.mean(), ((x - x.mean()) ** 2).sum()
    slope = ((x - mean) * y).sum() / squares
    start = y.mean() - slope * mean
    deviation = np.sqrt(((y - start - slope * x) ** 2).sum() / (len(x) - 2))
    return float(start), float(slope), float(deviation), float(mean), float(squares), float(x.min()), len(x)


def estimate_error_by_record(
    expected: float, high: float = math.nan, pairs: Mapping[str, tuple[float, float]] = PAIRS
) -> Floats:
    """Two densities of the logit of the error of a crowd, by real crowds, at `LOGITS`, (2, grid).

    The first is for the estimate and the lower end. In the second, some crowds err independently: it is for the upper
    end. The expected accuracy of the crowd is `expected`, and `high` is the upper end of the 95% interval of that.
    """
    start, slope, deviation, mean, squares, least, n_crowds = fit_line(tuple(pairs.values()))
    x = float(-logit(min(max(expected, 1e-4), 1 - 1e-6)))
    # No crowd of the record is surer than that, and the line is not followed any further.
    nearest = max(x, least)
    degrees = n_crowds - 2
    scale = deviation * np.sqrt(1 + 1 / n_crowds + (nearest - mean) ** 2 / squares)
    distance = (LOGITS - start - slope * nearest) / scale
    record = (1 + distance**2 / degrees) ** (-(degrees + 1) / 2)
    record /= record.sum()
    spread = (
        INDEPENDENT_SPREAD if math.isnan(high) else max(INDEPENDENT_SPREAD, (x + float(logit(min(high, 1 - 1e-6)))) / 2)
    )
    alone = np.exp(-(((LOGITS - x) / spread) ** 2) / 2)
    alone /= alone.sum()
    return np.stack([record, (1 - INDEPENDENT_SHARE) * record + INDEPENDENT_SHARE * alone])


def assume_any_error() -> Floats:
    """The densities for a crowd that is not like those of the record, before any label is known, (2, grid).

    The density of Jeffreys in the error is here that in its logit.
    """
    error = expit(LOGITS)
    density = np.sqrt(error * (1 - error))
    return np.asarray(np.stack([density, density]) / density.sum())


def see_known(densities: Floats, n_known: int, n_right: int) -> Floats:
    """The densities after known labels were seen, of which the model gives so many."""
    error = expit(LOGITS)
    chances = n_right * np.log1p(-error) + (n_known - n_right) * np.log(error)
    seen = densities * np.exp(chances - chances.max())
    return np.asarray(seen / seen.sum(axis=1, keepdims=True))


def find_range(densities: Floats, n_labels: int | None = None) -> tuple[float, float, float]:
    """The median of the share of right labels, and the ends of its 90% range: of so many, or of ever so many."""
    likely, generous = densities
    # Logits below which these shares of a density lie.
    high, middle, low = np.interp(QUANTILES, np.cumsum(likely) - likely / 2, LOGITS)
    high = min(high, np.interp(QUANTILES[0], np.cumsum(generous) - generous / 2, LOGITS))
    if n_labels is not None:
        error = expit(np.array([low, high]))
        chance = NORMAL_90 / np.sqrt(n_labels * error * (1 - error) + 0.25)
        low, high = middle + np.hypot(low - middle, chance[0]), middle - np.hypot(middle - high, chance[1])
    median, least, most = (float(expit(-each)) for each in (middle, low, high))
    if n_labels is None:
        return median, least, most
    return median, math.floor(n_labels * least) / n_labels, math.ceil(n_labels * most) / n_labels


def expect_width(densities: Floats, n_more: int, n_labels: int) -> float:
    """How wide the range of so many labels will be with further known labels of others, on average."""
    error = expit(LOGITS)
    # (n_more + 1, grid): how probable each number of right ones is.
    right = np.arange(n_more + 1)[:, None]
    chances = comb(n_more, right) * (1 - error) ** right * error ** (n_more - right)
    ranges = [find_range(see_known(densities, n_more, k), n_labels) for k in range(n_more + 1)]
    return float(chances @ densities[0] @ [high - low for _, low, high in ranges])
