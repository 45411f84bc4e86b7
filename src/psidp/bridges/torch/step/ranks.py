"""Ranks: the processes that train one model together, and all that they say to each other.

Totals are whole numbers, so that their sum over ranks is exact in any order; each rank adds the noise to its own part
of the parameters, and to no other. docs/design/distributed.md.
"""

import atexit
import os
from collections.abc import Callable, Iterator
from io import BytesIO
from time import sleep
from typing import Any

import torch
import torch.distributed as dist

__all__ = ["ALONE", "OtherRankError", "Ranks"]

SHORT = 2**47
"""Totals below this are sent in 48 bits, four bytes and two; if one rank has a larger one, all send 64."""

CACHED, LARGE = 2**16, 2**24
"""Entries that are packed and unpacked at a time, on a CPU and on a GPU."""

LINGER = 0.2
"""Seconds that a process waits at its end: gloo's threads give tensors back after a call has returned, and if one does
so while Python is ending, torch aborts."""

EVEN = 4
"""The length of a part is a multiple of this, so that its bytes can be read as integers."""


class OtherRankError(RuntimeError):
    """Another rank stopped, or was lost, and so this one stops."""


class Ranks:
    """One of several processes of torch.distributed, which train together; or a process alone.

    Every rank calls the same methods in the same order. What is said goes over a gloo group of its own, totals over
    nccl where the model is on a GPU and nccl is there. A rank that stops says so where the others next meet it; one
    that is killed, or does not answer in time, ends the others with a sentence.

    Examples:
        >>> ranks = Ranks.joined()
        >>> ranks.size, ranks.first, ranks.meet(3), ranks.told("terms")
        (1, True, 3, 'terms')
    """

    _found: tuple[Any, "Ranks"] | None = None

    def __init__(self, rank: int = 0, size: int = 1, group: Any = None) -> None:
        self.rank, self.size = rank, size
        self._group, self._on_gpu = group, None
        self._lost = False

    def __repr__(self) -> str:
        return f"Ranks(rank={self.rank}, size={self.size})"

    @classmethod
    def joined(cls) -> "Ranks":
        """The processes of torch.distributed, once they have met; a process alone, where there are no others."""
        if not (dist.is_available() and dist.is_initialized()):
            _refuse_strangers()
            return ALONE
        if dist.get_world_size() == 1:
            return ALONE
        world = dist.group.WORLD
        if cls._found is None or cls._found[0] is not world:
            if cls._found is None:
                atexit.register(sleep, LINGER)
            group = dist.new_group(backend="gloo", timeout=_patience(world))
            cls._found = world, cls(dist.get_rank(), dist.get_world_size(), group)
        return cls._found[1]

    @property
    def first(self) -> bool:
        """Whether this is rank 0, which keeps the account."""
        return self.rank == 0

    # Words

    def meet(self, value: int = 0) -> int:
        """Once all are here: the largest of their values. Refused on all where one of them stopped."""
        return value if self.size == 1 else self._met(0, value)

    def stop(self, error: BaseException) -> None:
        """Say to the others, where they next meet, that this rank stops with an error."""
        if self.size == 1 or self._lost or isinstance(error, OtherRankError):
            return
        try:
            self._met(1 + self.rank, 0)
        except OtherRankError as trouble:
            if self._lost:
                error.add_note(f"The others could not be told: {trouble}")

    def told(self, value: Any) -> Any:
        """What rank 0 has here: plain values and tensors, never code."""
        if self.size == 1:
            return value
        buffer = BytesIO()
        if self.first:
            torch.save(value, buffer)
        length = self.meet(buffer.tell())
        words = torch.frombuffer(bytearray(buffer.getvalue() or length), dtype=torch.uint8)
        self._call(dist.broadcast, words, src=0)
        return value if self.first else torch.load(BytesIO(words.numpy().tobytes()), "cpu", weights_only=True)

    def told_numbers(self, numbers: torch.Tensor | None) -> torch.Tensor:
        """Rank 0's integers of 64 bits, of which the others know nothing, not even how many."""
        length = self.meet(0 if numbers is None else numbers.numel())
        found = torch.empty(length, dtype=torch.int64) if numbers is None else numbers
        self._call(dist.broadcast, found, src=0)
        return found

    def added(self, number: int) -> int:
        """The sum of a whole number over all ranks."""
        if self.size == 1:
            return number
        self.meet()
        total = torch.tensor([number])
        self._call(dist.all_reduce, total)
        return int(total)

    def unlike(self, tensors: dict[str, torch.Tensor]) -> str | None:
        """The name of a tensor whose bits are not the same on all ranks, as far as a sum of them tells."""
        if self.size == 1:
            return None
        mine = torch.stack([_bits(tensor) for tensor in tensors.values()])
        both = torch.cat([mine, ~mine])
        self.meet()
        self._call(dist.all_reduce, both, op=dist.ReduceOp.MAX)
        most, least = both[: len(mine)], ~both[len(mine) :]
        return next((name for name, same in zip(tensors, (most == least).tolist(), strict=True) if not same), None)

    # Totals

    def part_of(self, length: int) -> int:
        """How many of so many parameters are a rank's own; the last one's are filled up with zeros."""
        return length if self.size == 1 else EVEN * -(-length // (EVEN * self.size))

    def released(
        self, totals: torch.Tensor, noised: Callable[[torch.Tensor], torch.Tensor], dtype: torch.dtype
    ) -> torch.Tensor:
        """Sums over all ranks, noised, in this type, on every rank: of totals (integers of 64 bits, flat).

        `noised` is called once on each rank, for the sums of its own part: every parameter has noise from one of them.
        """
        low, high = (int(x) for x in totals.aminmax())
        wide = self.meet(int(not -SHORT <= low <= high < SHORT))
        try:
            return self._gathered(noised(self._summed(totals, bool(wide))).to(dtype), totals.numel())
        except BaseException:
            self._lost = True  # the others wait for this part, and must see this process end
            raise

    def _summed(self, totals: torch.Tensor, wide: bool) -> torch.Tensor:
        """Exact sums over all ranks of this rank's part."""
        part, device = self.part_of(totals.numel()), totals.device
        rows = torch.nn.functional.pad(totals, (0, self.size * part - totals.numel())).view(self.size, part)
        sent = rows.view(torch.uint8) if wide else _packed(rows)
        sent = sent.to(self._where(device))
        heard = torch.empty_like(sent)
        self._call(dist.all_to_all_single, heard.view(-1), sent.view(-1), data=device)
        heard = heard.to(device)
        return heard.view(torch.int64).sum(0) if wide else _unpacked(heard)

    def _gathered(self, part: torch.Tensor, length: int) -> torch.Tensor:
        """All parts, one after the other."""
        mine = part.contiguous().view(torch.uint8).to(self._where(part.device))
        whole = torch.empty(self.size * mine.numel(), dtype=torch.uint8, device=mine.device)
        self._call(dist.all_gather, list(whole.chunk(self.size)), mine, data=part.device)
        return whole.view(part.dtype)[:length].to(part.device)

    def _where(self, device: torch.device) -> torch.device:
        """Where what is sent must lie: on the GPU for nccl, and elsewhere in the memory of the CPU."""
        return device if device.type == "cuda" and "nccl" in str(dist.get_backend_config()) else torch.device("cpu")

    # Sending

    def _met(self, stopped: int, value: int) -> int:
        words = torch.tensor([stopped, value])
        self._call(dist.all_reduce, words, op=dist.ReduceOp.MAX)
        who, largest = words.tolist()
        if who:
            raise OtherRankError(
                f"rank {who - 1} stopped with an error, which it tells itself; so all {self.size} stop."
            )
        return int(largest)

    def _call(self, collective: Callable[..., Any], *args: Any, data: torch.device | None = None, **how: Any) -> None:
        """One collective call, or a sentence; after that there is no way back."""
        lost = (
            f"a process that trains together with this one, rank {self.rank} of {self.size}, ended or did not answer "
            "in time. Start all of them again, as many as you like."
        )
        if self._lost:
            raise OtherRankError(lost)
        group = self._group
        if data is not None and self._where(data).type == "cuda":
            self._on_gpu = group = self._on_gpu or dist.new_group(backend="nccl")
        try:
            collective(*args, group=group, **how)
        except RuntimeError as trouble:
            self._lost = True
            raise OtherRankError(lost) from trouble


ALONE = Ranks()
"""A process that trains by itself."""


def _refuse_strangers() -> None:
    """Refuse a process that torchrun says is one of several, before they have met."""
    said = os.environ.get("WORLD_SIZE", "")
    if said.isdecimal() and not int(said) <= 1:
        raise RuntimeError(
            f"world size (processes that train together) must be 1 before they have met, got {said} from the "
            "environment's WORLD_SIZE. Call torch.distributed.init_process_group() first, and they train one model "
            "together. Or, if each is to train and to pay for a run of its own, start them without WORLD_SIZE."
        )


def _patience(world: Any) -> Any:
    """How long the processes wait for each other: as long as init_process_group was told."""
    for kind in ("cpu", "cuda"):
        try:
            return world._get_backend(torch.device(kind)).options._timeout
        except (RuntimeError, AttributeError):
            continue
    return None


def _packed(rows: torch.Tensor) -> torch.Tensor:
    """The lower 48 bits of integers: all lower 32 of a row, then the 16 above."""
    packed = torch.empty((len(rows), 6 * rows.shape[1]), dtype=torch.uint8, device=rows.device)
    low, high = _halves(packed)
    low.copy_(rows)  # what is above 32 bits is left out
    for some in _pieces(rows):
        high[:, some] = rows[:, some] >> 32
    return packed


def _unpacked(packed: torch.Tensor) -> torch.Tensor:
    """The sum over all rows of what was packed."""
    low, high = _halves(packed)
    total = torch.empty(low.shape[1], dtype=torch.int64, device=packed.device)
    for some in _pieces(low):
        bits = (low[:, some].to(torch.int64) & 0xFFFFFFFF).sum(0)
        total[some] = bits.add_(high[:, some].sum(0, dtype=torch.int64), alpha=2**32)
    return total


def _halves(packed: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The lower 32 bits and the 16 above, as integers in the same memory."""
    part = packed.shape[1] // 6
    return packed[:, : 4 * part].view(torch.int32), packed[:, 4 * part :].view(torch.int16)


def _pieces(rows: torch.Tensor) -> Iterator[slice]:
    """Columns at a time: on a CPU so few that they stay in its cache."""
    length = CACHED if rows.device.type == "cpu" else LARGE
    return (slice(start, start + length) for start in range(0, rows.shape[1], length))


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    """The sum of a tensor's bits, read as integers."""
    like = {2: torch.int16, 4: torch.int32, 8: torch.int64}.get(tensor.element_size(), torch.uint8)
    plain = tensor.detach().flatten()
    plain = torch.view_as_real(plain).flatten() if plain.is_complex() else plain
    return plain.contiguous().view(like).sum(dtype=torch.int64).cpu()
