"""The slow path in Triton: marked values settled in doubles, with more bits or from what the rectangles leave over.

The words of a value are functions of its position, so that the host can settle what is still open in the same way.
"""

import triton
import triton.language as tl

from psidp.bridges.torch.noise.kernel_cipher import block
from psidp.bridges.torch.noise.kernel_fast import as_type, wide_value

__all__ = ["settle"]

KEY = ["k0", "k1", "k2", "k3", "one", "capacity", "tile"]
LEFT_OVER: tl.constexpr = tl.constexpr(8182)
RECTANGLES: tl.constexpr = tl.constexpr(4091)
CELLS: tl.constexpr = tl.constexpr(4283)
MORE: tl.constexpr = tl.constexpr(1)
PROPOSAL: tl.constexpr = tl.constexpr(2)


@triton.jit
def _word(low, high):
    """Two words of 32 bits as a signed one of 64."""
    return (low.to(tl.uint64) | (high.to(tl.uint64) << 32)).to(tl.int64, bitcast=True)


@triton.jit
def _cell(choice, weights, live):
    """How many of the running totals are no larger than the choice: the cell proposed."""
    cell = tl.zeros_like(choice)
    for power in tl.static_range(13):
        step = 4096 >> power
        within = live & (cell + step <= CELLS + 1)
        total = tl.load(weights + cell + (step - 1), mask=within, other=0)
        cell = tl.where(within & (total <= choice), cell + step, cell)
    return cell


@triton.jit
def _proposal(choice, place, level, weights, cells, live):
    """The slot proposed, whether it is taken, and whether doubles cannot tell; claim 6 of the noise's design."""
    negative = choice & 1
    cell = _cell((choice.to(tl.uint64, bitcast=True) >> 1).to(tl.int64, bitcast=True), weights, live)
    inside = live & (cell < CELLS)
    edge = tl.load(cells + 4 * cell, mask=inside, other=0.0)
    width = tl.load(cells + 4 * cell + 1, mask=inside, other=0.0)
    height = tl.load(cells + 4 * cell + 2, mask=inside, other=0.0)
    floor = tl.load(cells + 4 * cell + 3, mask=inside, other=0.0)
    u = place.to(tl.float64) * 1.0842021724855044e-19
    step = width * ((1.0 + tl.where(negative == 1, -u, u)) * 0.5)
    t = step * (edge + 0.5 * step)
    e = tl.zeros_like(t)
    for k in tl.static_range(16):
        e = e * t + tl.load(cells + 4 * CELLS + k)
    v = level.to(tl.uint64, bitcast=True).to(tl.float64) * 5.421010862427522e-20
    gap = v - (height * e - floor)
    band = height * 5.684341886080802e-14
    slot = 2 * cell + negative + tl.where(cell < RECTANGLES, 0, 10)
    return slot.to(tl.int32), inside & (gap < -band), (inside & (tl.abs(gap) <= band)) | (live & (cell == CELLS))


@triton.jit
def _settled_words(slot, word, low, high, live, weights, cells, k0, k1, k2, k3, one, ROUNDS: tl.constexpr):
    """32 bits more for each word; slots and words of what the rectangles leave over, and where that was not decided.

    One loop for both, so that a lane's block is either its extension or its first proposals.
    """
    left_over = slot >= LEFT_OVER
    pending = live & left_over
    open_ = pending & (slot < 0)
    domain = tl.where(left_over, PROPOSAL, MORE).to(tl.uint32)
    extra = tl.zeros_like(low)
    serial = tl.full((), 0, tl.uint32)
    again = 1
    while again > 0:
        w = block(k0, k1, k2, k3, one, low, high, serial, domain, ROUNDS)
        extra = tl.where(serial == 0, w[0], extra)
        for half in tl.static_range(2):
            choice = _word(w[6 * half], w[6 * half + 1])
            place = _word(w[6 * half + 2], w[6 * half + 3])
            level = _word(w[6 * half + 4], w[6 * half + 5])
            proposed, taken, unknown = _proposal(choice, place, level, weights, cells, pending)
            slot = tl.where(taken, proposed, slot)
            word = tl.where(taken, place, word)
            open_ = open_ | unknown
            pending = pending & (taken == 0) & (unknown == 0)
        serial += 1
        again = tl.max(pending.to(tl.int32), 0)
    return slot, word, extra, left_over, open_


@triton.jit
def _first(words, marks, PER: tl.constexpr):
    """Index and word of the lowest mark of each lane; for 16 to a lane the word is one of 32 bits."""
    low = marks & (0 - marks)
    index = tl.zeros_like(marks)
    word = words[0].to(tl.int64)
    for k in tl.static_range(PER):
        other = words[k].to(tl.int64) if PER == 16 else _word(words[2 * k], words[2 * k + 1])
        word = tl.where(low == (1 << k), other, word)
        index = tl.where(low == (1 << k), k, index)
    return index, word, marks ^ low


@triton.jit(do_not_specialize=KEY)
def settle(
    x, marked, count, hard, capacity, tile, centre, reach, numbers, weights, cells,
    k0, k1, k2, k3, one,
    PER: tl.constexpr, LANES: tl.constexpr, ROUNDS: tl.constexpr,
):  # fmt: skip
    """Settle the marked values of a list whose length the GPU knows; what is still open goes to the list `hard`."""
    total = tl.load(count)
    sure_far = tl.load(numbers + 5)
    none = tl.full((), 0, tl.uint32)
    for start in range(tl.program_id(0) * LANES, total, tl.num_programs(0) * LANES):
        at = start + tl.arange(0, LANES)
        entry = tl.load(marked + at, mask=at < total, other=0)
        lane = entry >> 16
        marks = (entry & 65535).to(tl.int32)
        words = block(k0, k1, k2, k3, one, lane.to(tl.uint32), none, none, none, ROUNDS)
        while tl.max(marks, 0) > 0:
            live = marks != 0
            index, word, marks = _first(words, marks, PER)
            position = (lane // tile) * (PER * tile) + index * tile + lane % tile
            low, high = position.to(tl.uint32), (position >> 32).to(tl.uint32)
            slot = (((word >> 20 << 1) | (word & 1)) if PER == 16 else (word & 8191)).to(tl.int32)
            odd = (slot & 1) == 1
            slot, drawn, extra, left_over, open_ = _settled_words(
                slot, word, low, high, live, weights, cells, k0, k1, k2, k3, one, ROUNDS
            )
            if PER == 16:
                place = ((((word >> 1) & 0x7FFFF) - 0x40000) << 32) | extra.to(tl.int64)
                place = tl.where(odd, place ^ -1, place) << 13
                word = tl.where(left_over, drawn, place | slot.to(tl.int64))
            else:
                word = drawn
            value = tl.load(x + position, mask=live, other=0.0).to(tl.float64)
            noisy, away = wide_value(value, slot, word, centre, reach, numbers)
            sure = live & (away < sure_far) & (open_ == 0)
            tl.store(x + position, as_type(noisy, x.dtype.element_ty), mask=sure)
            bad = live & (sure == 0)
            place_of = tl.atomic_add(count + 1 + tl.zeros_like(marks), 1, mask=bad, sem="relaxed")
            tl.store(hard + place_of, position, mask=bad & (place_of < capacity))
