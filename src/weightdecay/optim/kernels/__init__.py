"""Ways to make one update: the same numbers, at different speeds.

    triton      one launch for every tensor of every group, on the GPU
    fused       torch's own fused kernels, on the CPU
    foreach     torch's multi-tensor operations
    reference   a tensor at a time, in the paper's lines: the specification

The fastest that can serve a parameter is taken, silently.
"""

from weightdecay.optim.kernels.graph_rates import Ahead
from weightdecay.optim.kernels.plan import KERNELS, Plan

__all__ = ["KERNELS", "Ahead", "Plan"]
