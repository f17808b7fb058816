"""Every test runs on one thread: small work on two busy cores is far slower with two.

Without a GPU, Triton's kernel runs under Triton's interpreter, which must be asked for before it
is imported.
"""

import os

import pytest
import torch
from hypothesis import settings

settings.register_profile("ours", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("ours")
torch.set_num_threads(1)
if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(0)
