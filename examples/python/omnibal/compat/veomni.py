# SPDX-License-Identifier: Apache-2.0
"""VeOmni's batching strategy for text: samples wait in a buffer until a micro-batch is due.

VeOmni takes the first samples that still fit. Here the oldest sample is in the micro-batch too, and
those that fill it best are chosen from the whole buffer, under both counts of tokens where there
are two.
"""

from typing import Any, Callable, Dict, List, Optional, Tuple

from .. import _core
from ._integers import named, whole_number


def _tokens(item: Dict[str, Any]) -> int:
    return whole_number(item["attention_mask"].sum(), "the sum of an attention mask")


class TextBatchingStrategy:
    """`put_item` until `is_ready_for_micro_batch`, then `get_micro_batch`.

    A sample longer than a micro-batch is one alone, as in VeOmni. `get_length_fn` counts the tokens
    of a sample, by default those of its attention mask. With `physical_token_cap` a micro-batch also
    holds at most so many tokens as `get_physical_length_fn` counts, by default the same ones.
    """

    @named
    def __init__(
        self,
        token_micro_bsz: int,
        buffer_size: int = 500,
        bsz_warmup_steps: int = 0,
        bsz_warmup_init_mbtoken: int = 200,
        get_length_fn: Optional[Callable[[Any], int]] = None,
        physical_token_cap: Optional[int] = None,
        get_physical_length_fn: Optional[Callable[[Any], int]] = None,
    ) -> None:
        token_micro_bsz = whole_number(token_micro_bsz, "token_micro_bsz", 1)
        buffer_size = whole_number(buffer_size, "buffer_size", 0)
        bsz_warmup_steps = whole_number(bsz_warmup_steps, "bsz_warmup_steps")
        bsz_warmup_init_mbtoken = whole_number(bsz_warmup_init_mbtoken, "bsz_warmup_init_mbtoken")
        if physical_token_cap is not None:
            physical_token_cap = whole_number(physical_token_cap, "physical_token_cap")
        if bsz_warmup_steps > 0 and bsz_warmup_init_mbtoken < 1:
            raise ValueError(
                "omnibal: bsz_warmup_init_mbtoken is %d, must be positive"
                % bsz_warmup_init_mbtoken
            )
        if physical_token_cap is not None and physical_token_cap < 1:
            raise ValueError(
                "omnibal: physical_token_cap is %d, must be positive"
                % physical_token_cap
            )
        self.token_micro_bsz = token_micro_bsz
        self.buffer_size = buffer_size
        self.bsz_warmup_steps = bsz_warmup_steps
        self.bsz_warmup_init_mbtoken = bsz_warmup_init_mbtoken
        self.physical_token_cap = physical_token_cap
        self._length = get_length_fn or _tokens
        self._physical_length = get_physical_length_fn or self._length
        self._step = 0
        self._pushes = 0
        self._items: Dict[int, Any] = {}
        self._lengths: Dict[int, Tuple[int, int]] = {}
        self._tokens = 0
        self._physical_tokens = 0
        self._refill()

    def _refill(self) -> None:
        """A packer for the present capacity, in which everything waits in its order."""
        self._capacity = self.get_cur_token_micro_bsz()
        self._room = max(2 * len(self._items), 2 * self.buffer_size, 1024)
        cap = self.physical_token_cap
        limits = self._capacity if cap is None else (self._capacity, cap)
        self._packer = _core.OnlinePacker(limits, buffer=self._room)
        for number in self._lengths:
            self._push(number)

    def _push(self, number: int) -> None:
        """A sample to the packer, as one that fills a micro-batch where it is longer."""
        length, physical = self._lengths[number]
        cap = self.physical_token_cap
        if cap is None:
            self._packer.push(number, min(length, self._capacity))
        elif length > self._capacity or physical > cap:
            self._packer.push(number, (self._capacity, cap))
        else:
            self._packer.push(number, (length, physical))

    def get_cur_token_micro_bsz(self) -> int:
        """The tokens of a micro-batch in the present step."""
        if self.bsz_warmup_steps > 0 and self._step <= self.bsz_warmup_steps:
            more = self.token_micro_bsz - self.bsz_warmup_init_mbtoken
            return more * self._step // self.bsz_warmup_steps + self.bsz_warmup_init_mbtoken
        return self.token_micro_bsz

    def is_ready_for_micro_batch(self) -> bool:
        """Whether `buffer_size` samples wait, and the tokens of a micro-batch after the warm-up or
        as many as `physical_token_cap`."""
        cap = self.physical_token_cap
        fills_cap = cap is not None and self._physical_tokens >= cap
        is_full = self._tokens >= self.token_micro_bsz or fills_cap
        return len(self._items) >= self.buffer_size and is_full

    @named
    def put_item(self, item: Any) -> None:
        """A sample of no tokens is an error. VeOmni drops it with a warning, and one of a single
        token, which is kept here. With `physical_token_cap` it is one without physical tokens that
        is an error."""
        length = whole_number(self._length(item), "the length of a sample")
        physical = length
        if self.physical_token_cap is not None:
            physical = whole_number(self._physical_length(item), "the physical length of a sample")
        if physical < 1 or length < 0:
            raise ValueError(
                "omnibal: a sample has %d tokens" % min(length, physical)
            )
        self._items[self._pushes] = item
        self._lengths[self._pushes] = (length, physical)
        self._tokens += length
        self._physical_tokens += physical
        if len(self._packer) == self._room:
            self._refill()
        else:
            self._push(self._pushes)
        self._pushes += 1

    @named
    def get_micro_batch(self, step: int) -> List[Any]:
        """The samples of a micro-batch, the oldest that waits among them."""
        if not self._items:
            raise ValueError("omnibal: no sample waits")
        self._step = step
        if self.get_cur_token_micro_bsz() != self._capacity:
            self._refill()
        numbers = self._packer.flush().ids.tolist()
        for number in numbers:
            length, physical = self._lengths.pop(number)
            self._tokens -= length
            self._physical_tokens -= physical
        return [self._items.pop(number) for number in sorted(numbers)]

    def empty(self) -> bool:
        """Whether no sample waits."""
        return not self._items
