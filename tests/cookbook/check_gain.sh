#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Demands that the figures of README.md that compare with other systems are those of the pages that hold
# the measurements: docs/evidence/comparison.md, docs/guides/trainer.md and docs/evidence/study.md.
#
# usage: check_gain.sh README RIVALS TRAINING STUDY
set -euo pipefail

awk -F ' *[|] *' '
  function demand(text) { if (!index(readme, text)) { print "README.md lacks: " text; failed = 1 } }

  FNR == 1 { ++page; heading = "" }
  page == 1 { readme = readme $0 "\n"; next }

  # The paragraph above a table of comparison.md ends with the time of the first row.
  page == 2 && /^[^|]/ { heading = heading $0 " " }
  page == 2 && /^$/ {
    if (match(heading, /the first row takes [0-9.]+ ms/)) {
      unit = substr(heading, RSTART + length("the first row takes ")) + 0
      name = substr(heading, 1, index(heading, ";") - 1)
    }
    heading = ""
  }
  page == 2 && $2 == "call" { for (i = 3; i < NF; ++i) if ($i == "time") column = i }
  page == 2 && /^\|/ {
    time[name, $2] = $column * unit
    load[name, $2] = $4
    above[name, $2] = $7
  }
  page == 3 && /^(padded|even_packs) +[0-9]/ {
    split($0, words, " ")
    if (!(words[1] in epoch)) epoch[words[1]] = words[2]
  }
  page == 4 && $2 == "+ memory" && !published { published = $7 + 0; here = $8 + 0 }

  END {
    lengths = "100000 lengths into groups of 4096 tokens, none can have fewer than 27803"
    ours = time[lengths, "`omnibal::best_fit_decreasing`, C++"]
    demand(sprintf("%.1f ms instead of %.1f s", ours,
                   time[lengths, "TRL\047s `_pack_bfd`, which also moves tokens"] / 1000))
    demand(sprintf("rewritten in Python, takes %.1f s",
                   time[lengths, "best fit of TRL and LightBinPack, written anew in Python"] / 1000))
    demand(sprintf("`omnibal.compat.trl` takes %.0f ms on lists", time[lengths, "`omnibal.compat.trl.bfd`, lists"]))
    demand(sprintf("%.1f ms instead of %.0f and %.0f ms", ours,
                   time[lengths, "LightBinPack\047s `obfd`, C++ called from Python"],
                   time[lengths, "seqpacker\047s `obfd` on arrays, Rust called from Python"]))
    squares = "4096 squares of lengths on 64 ranks, the same number on each"
    verl = "verl\047s `get_seqlen_balanced_partitions`"
    compat = "`omnibal.compat.verl`, lists"
    lpt = "`omnibal::lpt`, C++"
    demand(sprintf("in %.1f ms instead of %.1f ms; the largest load is %s times the mean in both",
                   time[squares, compat], time[squares, verl], load[squares, verl]))
    demand(sprintf("`lpt` takes %.2f ms and reaches %s", time[squares, lpt], load[squares, lpt]))
    if (load[squares, verl] != load[squares, compat]) { print "the loads differ"; failed = 1 }
    batches = "4096 samples on 8 ranks into micro-batches of at most 8192 tokens, none can have fewer than 584"
    way = "verl\047s way, its `get_seqlen_balanced_partitions`"
    mine = "`omnibal::micro_batches`, C++"
    demand(sprintf("%d of 584 micro-batches above the token limit instead of %d", above[batches, mine],
                   above[batches, way]))
    demand(sprintf("(%.3f instead of %.3f)", load[batches, way], load[batches, mine]))
    layers = "Three choices for each of 48 layers"
    demand(sprintf("in %.2f ms instead of %.0f ms", time[layers, "`omnibal::select_recompute`, C++"],
                   time[layers, "HiGHS, to the optimum, the model ready"]))
    demand(sprintf("an epoch %.0f %% shorter", 100 * (1 - epoch["even_packs"] / epoch["padded"])))
    demand(sprintf("fall by a factor of %.2f instead of %.2f", here, published))
    exit failed
  }
' "$@"
