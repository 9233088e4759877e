"""Cases of weighted isotonic regression with SciPy's solutions, as JSON, for the tests of incast-lab.

usage: isotonic.py SEED > crates/incast-lab/src/calibrate/isotonic.json   (the committed file has seed 1)
"""

import json
import random
import sys

from scipy.optimize import isotonic_regression

rng = random.Random(int(sys.argv[1]))
cases = []
for length in [1, 2, 3, 5, 8, 13, 65, 65, 200]:
    for kind in ["noise", "rising", "falling", "ties"]:
        y = [
            {
                "noise": rng.uniform(-2, 2),
                "rising": i / length + rng.gauss(0, 0.1),
                "falling": -i + rng.gauss(0, 0.5),
                "ties": float(rng.randrange(3)),
            }[kind]
            for i in range(length)
        ]
        y = [round(value, 6) for value in y]
        w = [round(rng.choice([1.0, rng.uniform(0.01, 100)]), 6) for _ in y]
        cases.append({"y": y, "w": w, "fit": [round(float(x), 12) for x in isotonic_regression(y, weights=w).x]})
print("[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]")
