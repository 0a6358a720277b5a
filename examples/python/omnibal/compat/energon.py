# SPDX-License-Identifier: Apache-2.0
"""The packing methods of Megatron-Energon's `TaskEncoder`.

`Packing` has `select_samples_to_pack` and `pack_selected_samples` of the documentation of June
2026. Derive your encoder from it first, and call `get_train_dataset` with `packing_buffer_size`:
`class Encoder(Packing, TaskEncoder): ...`. The module does not import Energon.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, Dict, List, Sequence

from .. import _core
from ..data import collate_packed
from ._integers import named, whole_numbers


def _field(sample: Any, name: str) -> Any:
    return sample[name] if isinstance(sample, Mapping) else getattr(sample, name)


class Packing:
    """Packs the samples of Energon's buffer with `omnibal.best_packing`.

    No pack exceeds the capacity, and each sample of the buffer is in one pack, in the order of the
    buffer. Both methods depend on their arguments only, so that Energon can restore samples.

    Attributes:
        packing_capacity: the limit of a pack in tokens; a tuple for several resources.
        packing_fields: the fields to concatenate, with one element per token; the first one counts
            the tokens.
        packing_oversized: what happens to samples that exceed the capacity alone: "error";
            "own_group" makes each of them a pack above the capacity; "skip" leaves them out.
    """

    packing_capacity: Any = None
    packing_fields: Sequence[str] = ("tokens", "labels")
    packing_oversized: str = "error"

    def packing_demand(self, sample: Any) -> Any:
        """The tokens of a sample; override it to return a tuple for several resources."""
        return len(_field(sample, self.packing_fields[0]))

    @named
    def select_samples_to_pack(self, samples: List[Any]) -> List[List[Any]]:
        """The samples of each pack, the pack of the oldest sample first."""
        if self.packing_oversized not in ("error", "own_group", "skip"):
            raise ValueError(
                "omnibal: packing_oversized is %r, must be 'error', 'own_group' or 'skip'"
                % (self.packing_oversized,)
            )
        if self.packing_capacity is None:
            raise ValueError("omnibal: packing_capacity is None, must be a number or a tuple")
        if not samples:
            return []
        demands = [self.packing_demand(sample) for sample in samples]
        packed = _core.best_packing(whole_numbers(demands, "demands", 0), self.packing_capacity)
        groups = [sorted(group) for group in packed.groups.tolist()]
        if len(packed.oversized) and self.packing_oversized == "error":
            first = int(packed.oversized[0])
            raise ValueError(
                "omnibal: sample %d of the buffer has %s, above the capacity %s; "
                "packing_oversized = 'own_group' or 'skip' accepts it"
                % (first, demands[first], self.packing_capacity)
            )
        if self.packing_oversized == "own_group":
            groups += [[i] for i in packed.oversized.tolist()]
        return [[samples[i] for i in group] for group in sorted(groups)]

    @named
    def pack_selected_samples(self, samples: List[Any]) -> Any:
        """One sample of the type of the first one, with the fields of `collate_packed`. Labels are
        concatenated as they are: in Megatron the label of a token is the next token.

        The samples are mappings or dataclasses. The result has the other fields of the first
        sample; a dataclass gets `position_ids`, `cu_seqlens` and `max_seqlen` only if it has these
        fields. `__key__` lists the keys of all samples, and Energon sets `__restore_key__`.
        """
        first = samples[0]
        if not isinstance(first, Mapping) and not dataclasses.is_dataclass(first):
            raise ValueError(
                "omnibal: samples[0] is of the class %s, must be a mapping or a dataclass"
                % type(first).__name__
            )
        batch: Dict[str, Any] = collate_packed(
            [{name: _field(sample, name) for name in self.packing_fields} for sample in samples],
            ignore_index=None,
        )
        if isinstance(first, Mapping):
            names = set(first) | set(batch)
        else:
            names = {field.name for field in dataclasses.fields(first)}
        if "__key__" in names:
            batch["__key__"] = ",".join(str(_field(sample, "__key__")) for sample in samples)
        if "__restore_key__" in names:
            batch["__restore_key__"] = ()
        batch = {name: value for name, value in batch.items() if name in names}
        if isinstance(first, Mapping):
            return {**first, **batch}
        return dataclasses.replace(first, **batch)

    # Energon's decorator `stateless` sets these.
    setattr(select_samples_to_pack, "__stateless__", True)
    setattr(pack_selected_samples, "__stateless__", True)
