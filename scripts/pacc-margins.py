"""Phase margins of PACC's controller over DCQCN, by the fluid model: how the gains' defaults were chosen (docs/pacc.md).

usage: pacc-margins.py [a b]    without gains: a table of some

The model is that of Y. Zhu et al., "ECN or Delay", CoNEXT 2016, with the constants of DCQCN's paper at 40 Gbit/s and packets
of 1,000 bytes, linearised at its fixed point; the controller acts each T = 80 us, its gains multiplied by p, and what a notification
does is seen at the queue 8 us later.
"""

import cmath
import math
import sys

RATE, WIRE, PERIOD, DELAY, REFERENCE = 40e9, 1082.0, 80e-6, 8e-6, 40_000.0
ADDITIVE, GAIN, FAST = 40e6 / 8 / WIRE, 1 / 256, 5
CNP, ALPHA, TIMER, BYTES = 50e-6, 55e-6, 55e-6, 10_000.0
CAPACITY = RATE / 8 / WIRE


def marked(p, packets):
    """Probability that one of so many packets is marked."""
    return -math.expm1(packets * math.log1p(-p))


def expected(p, packets):
    """p / ((1 - p)^-packets - 1)."""
    exponent = -packets * math.log1p(-p)
    return 0.0 if exponent > 600 else p / math.expm1(exponent)


def derivatives(alpha, target, rate, p):
    cuts = marked(p, CNP * rate) / CNP
    steps = rate * (expected(p, BYTES) + expected(p, TIMER * rate))
    rises = (1 - p) ** (FAST * BYTES) * expected(p, BYTES) + (1 - p) ** (FAST * TIMER * rate) * expected(p, TIMER * rate)
    return (
        GAIN / ALPHA * (marked(p, ALPHA * rate) - alpha),
        -(target - rate) * cuts + ADDITIVE * rate * rises,
        -rate * alpha / 2 * cuts + (target - rate) / 2 * steps,
    )


def fixed_point(flows):
    """Alpha, target rate, rate and p of each of so many flows."""
    rate = CAPACITY / flows

    def point(p):
        alpha = marked(p, ALPHA * rate)
        steps = rate * (expected(p, BYTES) + expected(p, TIMER * rate))
        return (alpha, rate + rate * alpha * marked(p, CNP * rate) / CNP / steps, rate, p)

    low, high = 1e-7, 0.9
    for _ in range(200):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if derivatives(*point(middle))[1] > 0 else (low, middle)
    return point(low)


def jacobian(point):
    columns = []
    for index, value in enumerate(point):
        up, down = ([*point[:index], value * (1 + side), *point[index + 1 :]] for side in (1e-5, -1e-5))
        columns.append([(u - d) / (2e-5 * value) for u, d in zip(derivatives(*up), derivatives(*down))])
    return [list(row) for row in zip(*columns)]


def plant(flows, rows, w):
    """Bytes of queue for a unit of p, at w rad/s."""
    matrix = [[(1j * w if i == j else 0) - rows[i][j] for j in range(3)] + [rows[i][3]] for i in range(3)]
    for i in range(3):
        for k in range(i + 1, 3):
            factor = matrix[k][i] / matrix[i][i]
            matrix[k] = [x - factor * y for x, y in zip(matrix[k], matrix[i])]
    return flows * WIRE * matrix[2][3] / matrix[2][2] / (1j * w)


def margin(flows, a, b):
    """Crossover in rad/s, and the phase margin there in degrees."""
    point = fixed_point(flows)
    rows, p = jacobian(point), point[3]
    w, above = 20.0, False
    while w < math.pi / PERIOD:
        z = cmath.exp(1j * w * PERIOD)
        hold = (1 - 1 / z) / (1j * w * PERIOD)
        loop = -plant(flows, rows, w) / REFERENCE * p * (a / (1 - 1 / z) + b) * hold * cmath.exp(-1j * w * DELAY)
        if above and abs(loop) < 1:
            return w, (math.degrees(cmath.phase(loop)) % 360) - 180
        above, w = abs(loop) >= 1, w * 1.01
    return math.nan, math.nan


gains = [tuple(map(float, sys.argv[1:3]))] if len(sys.argv) == 3 else [
    (a, b) for a in (0.0003, 0.001, 0.003) for b in (0.01, 0.03, 0.1, 0.2, 0.3, 1.0)
]
for a, b in gains:
    found = [(flows, *margin(flows, a, b)) for flows in (2, 4, 8, 16, 32, 64)]
    print(f"a {a:g} b {b:g}:", ", ".join(f"N {n}: {degrees:.1f} at {w:.0f} rad/s" for n, w, degrees in found))
