"""A test that is marked `cpu` runs as on a machine without a GPU, wherever it runs."""

import os

import pytest
import torch


@pytest.mark.cpu("it looks for the GPU, and must not find it")
def test_what_is_marked_cpu_sees_no_gpu() -> None:
    assert os.environ["CUDA_VISIBLE_DEVICES"] == ""  # for the processes that it starts
    assert not torch.cuda.is_available()
    assert torch.cuda.device_count() == 0
    assert torch.get_default_device().type == torch.zeros(1).device.type == "cpu"


@pytest.mark.gpu
def test_what_is_marked_gpu_has_its_tensors_there() -> None:
    assert torch.cuda.is_available()
    assert torch.zeros(1).is_cuda
