"""The specification: both algorithms in float64, an update at a time, in the paper's own lines.

Nothing of the package is used here. η_t is given for t = 1, 2, … as the paper counts.
"""

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Gradient = Callable[[int, Vector], Vector]


def algorithm_1(
    theta: Vector,
    gradient: Gradient,
    *,
    eta: Iterable[float],
    lr: float,
    momentum: float,
    nesterov: bool = False,
    l2: float = 0.0,
    weight_decay: float | list[float] = 0.0,
) -> Vector:
    """SGD with L2 regularization, and SGDW."""
    m = np.zeros_like(theta)
    for t, eta_t in enumerate(eta, start=1):  # line 4
        lam = weight_decay if isinstance(weight_decay, float) else weight_decay[t - 1]
        g = gradient(t, theta) + l2 * theta  # lines 5, 6
        m = momentum * m + eta_t * lr * g  # line 8
        step = momentum * m + eta_t * lr * g if nesterov else m
        theta = theta - step - eta_t * lam * theta  # line 9
    return theta


def algorithm_2(
    theta: Vector,
    gradient: Gradient,
    *,
    eta: Iterable[float],
    lr: float,
    betas: tuple[float, float],
    eps: float,
    amsgrad: bool = False,
    l2: float = 0.0,
    weight_decay: float | list[float] = 0.0,
) -> Vector:
    """Adam with L2 regularization, and AdamW."""
    m, v, largest = np.zeros_like(theta), np.zeros_like(theta), np.zeros_like(theta)
    beta1, beta2 = betas
    for t, eta_t in enumerate(eta, start=1):  # line 4
        lam = weight_decay if isinstance(weight_decay, float) else weight_decay[t - 1]
        g = gradient(t, theta) + l2 * theta  # lines 5, 6
        m = beta1 * m + (1 - beta1) * g  # line 7
        v = beta2 * v + (1 - beta2) * g**2  # line 8
        largest = np.maximum(largest, v)
        m_hat = m / (1 - beta1**t)  # line 9
        v_hat = (largest if amsgrad else v) / (1 - beta2**t)  # line 10
        theta = theta - eta_t * (lr * m_hat / (np.sqrt(v_hat) + eps) + lam * theta)  # line 12
    return theta
