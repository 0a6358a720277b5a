#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Counts the instructions of what bench_growth times, for each item and in the mean of its runs. Valgrind
# counts them, so that caches and other work on the machine do not matter.
# usage: instructions.sh bench_growth >instructions.txt
#        gnuplot -c growth.gp instructions.txt "million instructions" >instructions.svg
set -euo pipefail

program=$1
runs=3

count() {
  local name=$1 size=$2 counted
  counted=$(valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect='*time_growth*' \
    "$program" --benchmark_filter="^$name/n:$size/iterations:$runs/" 2>&1 >/dev/null | sed -n 's/.*Collected : *//p')
  # Nothing is counted where no benchmark has this name, size and number of runs.
  ((counted > 0))
  awk -v name="$name" -v size="$size" -v counted="$counted" -v runs="$runs" \
    'BEGIN { printf "%s/n:%d/ instructions_per_item=%.1f\n", name, size, counted / runs / size }'
}

# count_doubled NAME LEAST MOST
count_doubled() {
  local size
  for ((size = $2; size <= $3; size *= 2)); do count "$1" "$size"; done
}

count_doubled partition_layers 625 40000
for name in partition_minimax pack_tokens pack_images_and_tokens lpt schedule_steps; do
  count_doubled "$name" 10000 2560000
done
count_doubled improve_pass 10000 320000
