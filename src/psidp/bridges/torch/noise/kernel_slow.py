"""The slow path in Triton: marked values settled in doubles, with more bits or from what the rectangles leave over.

The words of a value are functions of its position, so that the host can settle what is still open in the same way.
"""

import triton
import triton.language as tl

from psidp.bridges.torch.noise.kernel_cipher import block
from psidp.bridges.torch.noise.kernel_fast import as_type, wide_value
from psidp.bridges.torch.noise.kernel_short import short_word

__all__ = ["settle"]

KEY = ["k0", "k1", "k2", "k3", "one", "room", "capacity", "tile"]
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
def _cell(choice, weights, guide, live):
    """How many of the running totals are no larger than the choice, which has 63 bits: the cell proposed.

    The guide says, by the choice's first twelve bits, between which two; most often they are one or two apart.
    """
    first = guide + (choice >> 51)
    low = tl.load(first, mask=live, other=0)
    high = tl.load(first + 1, mask=live, other=0)
    while tl.max(high - low, 0) > 0:
        middle = (low + high) >> 1
        open_ = low < high
        passed = open_ & (tl.load(weights + middle, mask=open_, other=0) <= choice)
        low = tl.where(passed, middle + 1, low)
        high = tl.where(open_ & (passed == 0), middle, high)
    return low


@triton.jit
def _proposal(choice, place, level, weights, guide, cells, live):
    """The slot proposed, whether it is taken, and whether doubles cannot tell; claim 6 of the noise's design."""
    negative = choice & 1
    cell = _cell((choice.to(tl.uint64, bitcast=True) >> 1).to(tl.int64, bitcast=True), weights, guide, live)
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
def _settled_words(
    slot, word, low, high, live, weights, guide, cells, k0, k1, k2, k3, one, PASS: tl.constexpr, ROUNDS: tl.constexpr
):  # fmt: skip
    """64 bits more for each word; slots and words of what the rectangles leave over, and where that was not decided.

    In the first pass a lane has one block, which is its extension or its first proposals, and is pending where these
    were refused. The second one begins with the proposals after them, and goes on until some are taken.
    """
    left_over = slot >= LEFT_OVER
    pending = live & left_over
    open_ = pending & (slot < 0)
    domain = tl.where(left_over, PROPOSAL, MORE).to(tl.uint32)
    extra = tl.zeros_like(word)
    serial = tl.full((), PASS, tl.uint32)
    again = 1
    while again > 0:
        w = block(k0, k1, k2, k3, one, low, high, serial, domain, ROUNDS)
        extra = tl.where(serial == 0, _word(w[0], w[1]), extra)
        for half in tl.static_range(2):
            choice = _word(w[6 * half], w[6 * half + 1])
            place = _word(w[6 * half + 2], w[6 * half + 3])
            level = _word(w[6 * half + 4], w[6 * half + 5])
            proposed, taken, unknown = _proposal(choice, place, level, weights, guide, cells, pending)
            slot = tl.where(taken, proposed, slot)
            word = tl.where(taken, place, word)
            open_ = open_ | unknown
            pending = pending & (taken == 0) & (unknown == 0)
        serial += 1
        again = PASS * tl.max(pending.to(tl.int32), 0)
    return slot, word, extra, left_over, open_, pending


@triton.jit
def _first(words, marks, PER: tl.constexpr):
    """Index and word of the lowest mark of each lane; for more than 8 to a lane the word is one of 32 bits."""
    low = marks & (0 - marks)
    index = tl.zeros_like(marks)
    word = words[0].to(tl.int64)
    for k in tl.static_range(PER):
        other = _word(words[2 * k], words[2 * k + 1]) if PER == 8 else short_word(words, k).to(tl.int64)
        word = tl.where(low == (1 << k), other, word)
        index = tl.where(low == (1 << k), k, index)
    return index, word, marks ^ low


@triton.jit
def _slot(word, PER: tl.constexpr):
    """The slot that a value's first word chooses."""
    if PER == 24:
        slot = word >> 19
    elif PER == 16:
        slot = (word >> 20 << 1) | (word & 1)
    else:
        slot = word & 8191
    return slot.to(tl.int32)


@triton.jit
def _place(word, extra, odd, PER: tl.constexpr):
    """The 51 bits of the place above the 13 of a slot: those of the first word, then of the extension."""
    if PER == 24:
        place = ((((word >> 11) & 0xFF) - 0x80) << 43) | (extra & 0x7FFFFFFFFFF)
    else:
        place = ((((word >> 1) & 0x7FFFF) - 0x40000) << 32) | (extra & 0xFFFFFFFF)
        place = tl.where(odd, place ^ -1, place)
    return place << 13


@triton.jit(do_not_specialize=KEY)
def settle(
    x, marked, count, again, room, hard, capacity, tile, centre, reach, numbers, weights, guide, cells,
    k0, k1, k2, k3, one,
    PASS: tl.constexpr, PER: tl.constexpr, LANES: tl.constexpr, ROUNDS: tl.constexpr,
):  # fmt: skip
    """Settle the marked values of a list whose length the GPU knows; what is still open goes to the list `hard`.

    Count has three lengths: of what the fast kernel marked, of `hard`, and of the list `again`, to which the first
    pass writes values whose first proposals were refused. The second pass settles these: they would hold up all others.
    """
    total = tl.minimum(tl.load(count + 2), room) if PASS == 1 else tl.load(count)
    sure_far = tl.load(numbers + 5)
    none = tl.full((), 0, tl.uint32)
    for start in range(tl.program_id(0) * LANES, total, tl.num_programs(0) * LANES):
        at = start + tl.arange(0, LANES)
        entry = tl.load(marked + at, mask=at < total, other=0)
        lane = entry >> 24
        marks = (entry & 0xFFFFFF).to(tl.int32)
        words = block(k0, k1, k2, k3, one, lane.to(tl.uint32), none, none, none, ROUNDS)
        while tl.max(marks, 0) > 0:
            live = marks != 0
            index, word, marks = _first(words, marks, PER)
            position = (lane // tile) * (PER * tile) + index * tile + lane % tile
            low, high = position.to(tl.uint32), (position >> 32).to(tl.uint32)
            slot = _slot(word, PER)
            odd = (slot & 1) == 1
            slot, drawn, extra, left_over, open_, pending = _settled_words(
                slot, word, low, high, live, weights, guide, cells, k0, k1, k2, k3, one, PASS, ROUNDS
            )
            word = drawn if PER == 8 else tl.where(left_over, drawn, _place(word, extra, odd, PER) | slot.to(tl.int64))
            value = tl.load(x + position, mask=live, other=0.0).to(tl.float64)
            noisy, away = wide_value(value, slot, word, centre, reach, numbers)
            sure = live & (away < sure_far) & (open_ == 0)
            tl.store(x + position, as_type(noisy, x.dtype.element_ty), mask=sure)
            bad = live & (sure == 0)
            if PASS == 0:
                next_ = tl.atomic_add(count + 2 + tl.zeros_like(marks), 1, mask=pending, sem="relaxed")
                later = pending & (next_ < room)
                tl.store(again + next_, (lane << 24) | (tl.full((), 1, tl.int64) << index), mask=later)
                bad = bad & (later == 0)
            place_of = tl.atomic_add(count + 1 + tl.zeros_like(marks), 1, mask=bad, sem="relaxed")
            tl.store(hard + place_of, position, mask=bad & (place_of < capacity))
