"""Which elements of a sharded parameter are on this rank."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Region:
    """Which elements of the whole tensor are on this rank.

    `shape` is the whole tensor's. `coordinates` are the indices on this rank, for each dimension.
    """

    shape: tuple[int, ...]
    coordinates: tuple[Tensor, ...]

    def elements(self, device: torch.device) -> Tensor:
        """Return each element's number in the whole tensor, in row-major order."""
        numbers = torch.zeros((), dtype=torch.int64, device=device)
        for length, indices in zip(self.shape, self.coordinates, strict=True):
            numbers = numbers[..., None] * length + indices.to(device)
        return numbers

    def rows(self) -> tuple[int, int, int] | None:
        """Return (length, pitch, first) if the elements are equally spaced rows, else None.

        Then the i-th is element `first + (i // length) * pitch + i % length` of the whole tensor.
        This holds for all regions cut along one dimension, or along the first and one other.
        """
        first, stride = 0, 1
        runs: list[tuple[int, int]] = []  # (count, spacing), the innermost dimension first
        for length, indices in zip(reversed(self.shape), reversed(self.coordinates), strict=True):
            if not len(indices):
                return 1, 0, 0
            if indices[-1] - indices[0] != len(indices) - 1:
                return None
            first += int(indices[0]) * stride
            if runs and runs[-1][0] * runs[-1][1] == stride:
                runs[-1] = runs[-1][0] * len(indices), runs[-1][1]
            elif len(indices) > 1:
                runs.append((len(indices), stride))
            stride *= length
        if not runs or runs[0][1] != 1:
            runs.insert(0, (1, 1))
        if len(runs) > 2:
            return None
        return runs[0][0], runs[1][1] if len(runs) == 2 else 0, first


def local(tensor: Tensor) -> Tensor:
    """Return the part of a tensor that is on this rank."""
    to_local = getattr(tensor, "to_local", None)
    return tensor if to_local is None else to_local()


def region_of(tensor: Any) -> Region | None:
    """Return which elements of a DTensor are on this rank; None for any other tensor."""
    placements: tuple[Any, ...] = getattr(tensor, "placements", ())
    mine = tensor.device_mesh.get_coordinate() if placements else None
    if mine is None:  # not a DTensor, or one with nothing on this rank
        return None
    shape = tuple(tensor.shape)
    coordinates = [torch.arange(length, device="cpu") for length in shape]
    for parts, place, placement in zip(tensor.device_mesh.shape, mine, placements, strict=True):
        # Split as torch splits the tensor itself, which differs between placements.
        split = getattr(placement, "_split_tensor", None)
        if split is not None:
            axis = [-1 if dim == placement.dim else 1 for dim in range(len(shape))]
            along = coordinates[placement.dim].view(axis)
            pieces, _ = split(along, parts, with_padding=False, contiguous=False)
            coordinates[placement.dim] = pieces[place].flatten()
    expected = tuple(map(len, coordinates))
    found = tuple(local(tensor).shape)
    if expected != found:
        raise RuntimeError(
            f"A 16-bit shard of a parameter {shape} placed as {placements} must have the "
            f"shape {expected}, as torch would divide it, got {found}: its rounding depends on "
            "which elements it has, and that is unknown. Use distribute_tensor or fully_shard."
        )
    if tensor.is_complex():  # rounded as pairs of real numbers
        shape, coordinates = (*shape, 2), [*coordinates, torch.arange(2, device="cpu")]
    return Region(shape, tuple(coordinates))
