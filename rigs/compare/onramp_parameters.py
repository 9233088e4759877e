# SPDX-License-Identifier: MIT OR Apache-2.0
"""On-Ramp's parameters as `onrampctl` has them."""

from errors import BadInput
from schemes import schemes_of
from values import canonical, quantity

# By the same name and with the same meaning on both sides.
ALIKE = ["variant", "beta", "release"]
TIMES = ["reference", "max_hold"]


def onramp(run, rows):
    """What `onrampctl load --set` is told; None where no packet is held. All classes have the same, as hosts hold by destination."""
    found = [parameters.get("underlay") for _, parameters in schemes_of(run, rows).values()]
    if any(one != found[0] for one in found):
        raise BadInput(f"scheme {run['scheme']}: its classes have different underlays; a rig holds packets by destination")
    if not found[0]:
        return None
    underlay = found[0]
    times = {key: f"{quantity('time', underlay[key], key) // 1000}ns" for key in TIMES}
    return {**{key: canonical(underlay[key]) for key in ALIKE}, **times}
