#!/usr/bin/env bash
# NumPy loads the arrays of a plan, and they agree with its JSON file. Exit status 77: no NumPy.
#
# usage: numpy_load.sh PROGRAM
set -eu
program=$(realpath "$1")
python3 -c 'import numpy' 2>/dev/null || exit 77
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$program" --synthetic 5000 --packer isf --quiet --output "$work/plan"
python3 - "$work/plan" <<'PYTHON'
import json, sys
import numpy

folder = sys.argv[1]
plan = json.load(open(folder + "/plan.json"))
arrays = {name: numpy.load(f"{folder}/{name}.npy")
          for name in ("offsets", "items", "order", "oversized", "loads")}
groups = plan["report"]["groups"]

for name in ("offsets", "items", "order", "oversized"):
    assert arrays[name].dtype == numpy.uint32, name
assert arrays["loads"].dtype == numpy.int64
assert arrays["loads"].shape == (groups, 2)
assert arrays["offsets"].shape == (groups + 1,)
assert arrays["offsets"].tolist() == plan["groups"]["offsets"]
assert arrays["items"].tolist() == plan["groups"]["items"]
assert arrays["order"].tolist() == plan["order"]
assert arrays["oversized"].tolist() == plan["oversized"]
assert sorted(arrays["order"].tolist()) == list(range(groups))
everything = numpy.sort(numpy.concatenate((arrays["items"], arrays["oversized"])))
assert everything.tolist() == list(range(plan["report"]["samples"]))
limit = [plan["capacity"]["images"], plan["capacity"]["tokens"]]
assert (arrays["loads"] <= limit).all()
PYTHON
