#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# NumPy loads the arrays of a plan, and they agree with its JSON file. Exit status 77: no python3 has it.
#
# usage: numpy_load.sh PROGRAM
set -eu
program=$(realpath "$1")
. "$(dirname "$0")/find_python.sh"
[ "$has_numpy" = yes ] || exit 77

"$program" --synthetic 5000 --packer isf --quiet --output "$work/plan"
"$program" --synthetic 5000 --packer isf --quiet --output "$work/other" --epoch 1
"$program" --synthetic 5000 --packer isf --quiet --output "$work/repeat" --remainder repeat --ranks 9
for epoch in 0 1 2; do
  "$program" --synthetic 5000 --packer isf --quiet --output "$work/carry$epoch" --remainder carry \
    --ranks 64 --epoch "$epoch"
done
"$python" - "$work" <<'PYTHON'
import json, sys
import numpy

work = sys.argv[1]
folder = work + "/plan"
plan = json.load(open(folder + "/plan.json"))
arrays = {name: numpy.load(f"{folder}/{name}.npy")
          for name in ("offsets", "items", "order", "left_out", "oversized", "loads")}
groups = plan["report"]["groups"]

for name in ("offsets", "items", "order", "left_out", "oversized"):
    assert arrays[name].dtype == numpy.uint32, name
assert arrays["loads"].dtype == numpy.int64
assert arrays["loads"].shape == (groups, 2)
assert arrays["offsets"].shape == (groups + 1,)
assert arrays["offsets"].tolist() == plan["groups"]["offsets"]
assert arrays["items"].tolist() == plan["groups"]["items"]
assert arrays["order"].tolist() == plan["order"]
assert arrays["oversized"].tolist() == plan["oversized"]
assert sorted(arrays["order"].tolist()) == list(range(groups))
assert arrays["left_out"].size == 0


def dist_ratios(order, ranks):
    """The mean dist ratio of images and of tokens."""
    full = len(order) // ranks
    cells = arrays["loads"][order[:full * ranks]].reshape(full, ranks, 2)
    largest, mean = list(cells.max(axis=1)), list(cells.mean(axis=1))
    if len(order) % ranks:
        last = arrays["loads"][order[full * ranks:]]
        largest.append(last.max(axis=0))
        mean.append(last.sum(axis=0) / ranks)
    waits = numpy.subtract(largest, mean) / numpy.maximum(largest, 1)
    return waits.mean(axis=0)


waiting = dist_ratios(arrays["order"], plan["ranks"])
written = plan["schedule"]["dist_ratio"]
assert numpy.allclose(waiting, [written["images"], written["tokens"]])
other = numpy.load(work + "/other/order.npy")
assert sorted(other.tolist()) == list(range(groups))
assert other.tolist() != arrays["order"].tolist()

plan_of = {name: json.load(open(f"{work}/{name}/plan.json"))
           for name in ("repeat", "carry0", "carry1", "carry2")}
order = plan_of["repeat"]["order"]
# The capacity, and so the groups, depend on the number of ranks.
groups = plan_of["repeat"]["report"]["groups"]
repeats = plan_of["repeat"]["schedule"]["repeats"]
assert len(order) % 9 == 0 and 0 < repeats < 9
assert sorted(order[:-repeats]) == list(range(groups))

left_out, runs = [], [0] * plan_of["carry0"]["report"]["groups"]
for epoch in range(3):
    one = plan_of[f"carry{epoch}"]
    assert one["carried"] == left_out
    left_out = one["left_out"]
    assert left_out == numpy.load(f"{work}/carry{epoch}/left_out.npy").tolist()
    assert len(left_out) < 64 and len(one["order"]) % 64 == 0
    for group in one["order"]:
        runs[group] += 1
for group in left_out:
    runs[group] += 1
assert set(runs) == {3}
everything = numpy.sort(numpy.concatenate((arrays["items"], arrays["oversized"])))
assert everything.tolist() == list(range(plan["report"]["samples"]))
limit = [plan["capacity"]["images"], plan["capacity"]["tokens"]]
assert (arrays["loads"] <= limit).all()
PYTHON
