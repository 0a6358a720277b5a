"""VeOmni's batching strategy for text: samples wait in a buffer until a micro-batch is due.

VeOmni takes the first samples that still fit. Here the oldest sample is in the micro-batch too, and
those that fill it best are chosen from the whole buffer. There is one count of tokens:
`physical_token_cap` and `get_physical_length_fn` of newer versions are not taken.
"""

from typing import Any, Callable, Dict, List, Optional

from .. import _core


def _tokens(item: Dict[str, Any]) -> int:
    return int(item["attention_mask"].sum())


class TextBatchingStrategy:
    """`put_item` until `is_ready_for_micro_batch`, then `get_micro_batch`.

    A sample longer than a micro-batch is one alone, as in VeOmni. `get_length_fn` counts the tokens
    of a sample, by default those of its attention mask.
    """

    def __init__(
        self,
        token_micro_bsz: int,
        buffer_size: int = 500,
        bsz_warmup_steps: int = 0,
        bsz_warmup_init_mbtoken: int = 200,
        get_length_fn: Optional[Callable[[Any], int]] = None,
    ) -> None:
        if bsz_warmup_steps > 0 and bsz_warmup_init_mbtoken < 1:
            raise ValueError(
                "omnibal.compat.veomni: bsz_warmup_init_mbtoken is %d, must be positive"
                % bsz_warmup_init_mbtoken
            )
        self.token_micro_bsz = token_micro_bsz
        self.buffer_size = buffer_size
        self.bsz_warmup_steps = bsz_warmup_steps
        self.bsz_warmup_init_mbtoken = bsz_warmup_init_mbtoken
        self._length = get_length_fn or _tokens
        self._step = 0
        self._pushes = 0
        self._items: Dict[int, Any] = {}
        self._lengths: Dict[int, int] = {}
        self._tokens = 0
        self._refill()

    def _refill(self) -> None:
        """A packer for the present capacity, in which everything waits in its order."""
        self._capacity = self.get_cur_token_micro_bsz()
        self._room = max(2 * len(self._items), 2 * self.buffer_size, 1024)
        self._packer = _core.OnlinePacker(self._capacity, buffer=self._room)
        for number, length in self._lengths.items():
            self._packer.push(number, min(length, self._capacity))

    def get_cur_token_micro_bsz(self) -> int:
        """The tokens of a micro-batch in the present step."""
        if self.bsz_warmup_steps > 0 and self._step <= self.bsz_warmup_steps:
            more = self.token_micro_bsz - self.bsz_warmup_init_mbtoken
            return more * self._step // self.bsz_warmup_steps + self.bsz_warmup_init_mbtoken
        return self.token_micro_bsz

    def is_ready_for_micro_batch(self) -> bool:
        """Whether `buffer_size` samples wait, and the tokens of a micro-batch after the warm-up."""
        return len(self._items) >= self.buffer_size and self._tokens >= self.token_micro_bsz

    def put_item(self, item: Any) -> None:
        """A sample of no tokens is an error. VeOmni drops it with a warning, and one of a single
        token, which is kept here."""
        length = self._length(item)
        if length < 1:
            raise ValueError("omnibal.compat.veomni: a sample has %d tokens" % length)
        self._items[self._pushes] = item
        self._lengths[self._pushes] = length
        self._tokens += length
        if len(self._packer) == self._room:
            self._refill()
        else:
            self._packer.push(self._pushes, min(length, self._capacity))
        self._pushes += 1

    def get_micro_batch(self, step: int) -> List[Any]:
        """The samples of a micro-batch, the oldest that waits among them."""
        if not self._items:
            raise ValueError("omnibal.compat.veomni: no sample waits")
        self._step = step
        if self.get_cur_token_micro_bsz() != self._capacity:
            self._refill()
        numbers = self._packer.flush().ids.tolist()
        self._tokens -= sum(self._lengths.pop(number) for number in numbers)
        return [self._items.pop(number) for number in sorted(numbers)]

    def empty(self) -> bool:
        """Whether no sample waits."""
        return not self._items
