"""Kernels: several ways to compute the same update, at different speeds.

    triton      one launch for every tensor of every group, on the GPU
    fused       torch's own fused kernels, on the CPU
    foreach     torch's multi-tensor operations
    reference   one tensor at a time, by the paper's lines: the specification

Each parameter gets the fastest kernel that supports it, without a message.
"""

from weightdecay.optim.kernels.graph_rates import GraphRates
from weightdecay.optim.kernels.plan import KERNELS, Plan

__all__ = ["KERNELS", "GraphRates", "Plan"]
