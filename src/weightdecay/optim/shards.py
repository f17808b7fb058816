"""Which elements of a sharded parameter are on this rank."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Region:
    """Where the elements on this rank lie in the whole tensor.

    `shape` is the whole tensor's; `coordinates` are, for each of its dimensions, those found here.
    """

    shape: tuple[int, ...]
    coordinates: tuple[Tensor, ...]

    def elements(self, device: torch.device) -> Tensor:
        """Return the number of each element in the whole tensor, counted row by row."""
        numbers = torch.zeros((), dtype=torch.int64, device=device)
        for length, here in zip(self.shape, self.coordinates, strict=True):
            numbers = numbers[..., None] * length + here.to(device)
        return numbers

    def rows(self) -> tuple[int, int, int] | None:
        """Return (length, pitch, first) if the elements are rows at equal distances, else None.

        Then the i-th is element `first + (i // length) * pitch + i % length` of the whole tensor.
        So are all regions that are cut out of one dimension, or of the first and one other.
        """
        first, stride = 0, 1
        runs: list[tuple[int, int]] = []  # how many, and how far apart; the innermost first
        for length, here in zip(reversed(self.shape), reversed(self.coordinates), strict=True):
            if not len(here):
                return 1, 0, 0
            if here[-1] - here[0] != len(here) - 1:
                return None
            first += int(here[0]) * stride
            if runs and runs[-1][0] * runs[-1][1] == stride:
                runs[-1] = runs[-1][0] * len(here), runs[-1][1]
            elif len(here) > 1:
                runs.append((len(here), stride))
            stride *= length
        if not runs or runs[0][1] != 1:
            runs.insert(0, (1, 1))
        if len(runs) > 2:
            return None
        return runs[0][0], runs[1][1] if len(runs) == 2 else 0, first


def local(tensor: Tensor) -> Tensor:
    """Return what of a tensor is on this rank."""
    to_local = getattr(tensor, "to_local", None)
    return tensor if to_local is None else to_local()


def region_of(tensor: Any) -> Region | None:
    """Return where a DTensor's local elements lie in it; None for any other tensor."""
    placements: tuple[Any, ...] = getattr(tensor, "placements", ())
    mine = tensor.device_mesh.get_coordinate() if placements else None
    if mine is None:  # no DTensor, or one that has nothing on this rank
        return None
    shape = tuple(tensor.shape)
    coordinates = [torch.arange(length, device="cpu") for length in shape]
    for parts, place, placement in zip(tensor.device_mesh.shape, mine, placements, strict=True):
        # Split as torch splits the tensor itself, which is not the same for every placement.
        split = getattr(placement, "_split_tensor", None)
        if split is not None:
            axis = [-1 if dim == placement.dim else 1 for dim in range(len(shape))]
            along = coordinates[placement.dim].view(axis)
            pieces, _ = split(along, parts, with_padding=False, contiguous=False)
            coordinates[placement.dim] = pieces[place].flatten()
    here = tuple(map(len, coordinates))
    found = tuple(local(tensor).shape)
    if here != found:
        raise RuntimeError(
            f"A 16-bit shard of a parameter {shape} placed as {placements} must have the "
            f"shape {here}, as torch would divide it, got {found}: it cannot be told which "
            "elements it has, by which it is rounded. Use distribute_tensor or fully_shard."
        )
    if tensor.is_complex():  # which is rounded as pairs of real numbers
        shape, coordinates = (*shape, 2), [*coordinates, torch.arange(2, device="cpu")]
    return Region(shape, tuple(coordinates))
