#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds and runs the benchmarks and prints what they promise and measure as tables in markdown.
# usage: bench.sh [--quick]    (--quick: fewer repetitions, at most 1.2 million samples)
# OMNIBAL_BENCH_LENGTHS names a folder of length files in which groups are counted too.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$root/build/release
results=$build/bench/results

options=(--benchmark_repetitions=5 --benchmark_min_time=0.2)
case ${1:-} in
  '') ;;
  --quick)
    options=(--benchmark_repetitions=3 --benchmark_min_time=0.02)
    options+=('--benchmark_filter=-n:10000000/')
    ;;
  *) sed -n '4,5s/^# //p' "$0" >&2; exit 2 ;;
esac

"$root/scripts/setup.sh" ci
cd "$root"
{
  cmake --preset release
  cmake --build --preset release --target bench
} >&2

rm -rf "$results"
mkdir -p "$results"
for program in "$build"/bench/bench_*; do
  area=${program##*/bench_}
  [[ $area != files || -n ${OMNIBAL_BENCH_LENGTHS:-} ]] || continue
  # Minutes, and no promises; docs/evidence/reliability.md.
  [[ $area != growth ]] || continue
  "$program" "${options[@]}" --benchmark_report_aggregates_only=true \
    --benchmark_out="$results/$area.json" --benchmark_out_format=json >&2
done

# Google Benchmark writes one key a line; the medians are the results.
awk '
  function cells(row, columns, count, table,    line, i) {
    line = "| " row " |"
    for (i = 1; i <= count; ++i) line = line " " table[row, columns[i]] " |"
    return line
  }
  function rule(count,    line) {
    for (line = "|"; count > 0; --count) line = line "---|"
    return line
  }

  BEGIN {
    size_count = split("10000 100000 1000000 1200000 10000000", sizes, " ")
    for (i = 1; i <= size_count; ++i) is_column[sizes[i]]
    packer_count = split("best_fit_tokens best_fit_images_and_tokens isf next_fit packing_bound",
      packers, " ")
  }
  /^ *{/ { split("", value) }
  match($0, /^ *"[^"]+": /) {
    key = substr($0, RSTART, RLENGTH)
    gsub(/[ ":]/, "", key)
    text = substr($0, RSTART + RLENGTH)
    sub(/,$/, "", text)
    gsub(/^"|"$/, "", text)
    value[key] = text
  }
  /^ *},?$/ && value["aggregate_name"] == "median" {
    name = value["run_name"]
    gsub(/\/(manual_time|iterations:1|repeats:[0-9]+)/, "", name)
    split(name, path, "/")
    row = name
    sub(/\/n:[0-9]+$/, "", row)
    size = name
    sub(/^.*\/n:/, "", size)
    if (path[1] == "growth") {
      if (!(path[3] in known)) sets[++set_count] = path[3]
      known[path[3]]
      growth[path[3], path[2]] = sprintf("%.1f", value["ratio"])
    } else if (path[1] == "quality") {
      groups[++group_count] = sprintf("| %s | %d | %d | %.2f | %.2f | %.2f |", substr(name, 9),
        value["lower_bound"], value["best_fit"], value["best_fit_percent"], value["isf_percent"],
        value["next_fit_percent"])
    } else if (path[1] ~ /^improve_packing/) {
      kind = path[1] == "improve_tokens" ? ", tokens alone" : ""
      sub(/^[^\/]*\//, "", name)
      improved[++improved_count] = sprintf("| %s%s | %.2f |", name, kind, value["best_fit_percent"])
      for (i = 1; i <= 64; i *= 4) {
        improved[improved_count] = improved[improved_count] \
          sprintf(" %.3f (%.0f) |", value["percent_" i], value["ns_" i])
      }
    } else if (path[1] == "online_quality") {
      streams[++stream_count] = sprintf("| %s | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f |",
        substr(row, 16), 100 * value["utilization_offline"], 100 * value["utilization_32"],
        100 * value["utilization_256"], 100 * value["utilization_4096"], value["percent_32"],
        value["percent_256"], value["percent_4096"])
    } else if (size in is_column && "ns_per_item" in value) {
      if (!(row in known)) rows[++row_count] = row
      known[row]
      times[row, size] = sprintf("%.1f (%.2f)", value["ns_per_item"], value["ratio"])
    } else if ("ns_per_item" in value) {
      load = "load_over_bound" in value ? sprintf("%.6f", value["load_over_bound"]) : ""
      others[++other_count] = sprintf("| %s | %.1f (%.2f) | %s |", name, value["ns_per_item"],
        value["ratio"], load)
    }
    parts = split(value["label"], promises, "; ")
    for (i = 1; i <= parts; ++i) {
      split(promises[i], promise, " [|] ")
      measured = value[promise[2]] + 0
      if (!(promise[1] in worst)) order[++promise_count] = promise[1]
      if (!(promise[1] in worst) || measured > worst[promise[1]]) {
        worst[promise[1]] = measured
        where[promise[1]] = name
      }
      most[promise[1]] = promise[3] + 0
    }
    split("", value)
  }
  END {
    print "| promise | worst | at most | where | |\n" rule(5)
    for (i = 1; i <= promise_count; ++i) {
      name = order[i]
      verdict = "held"
      if (worst[name] > most[name]) {
        verdict = "**missed**"
        ++missed
      }
      printf "| %s | %.4g | %.4g | %s | %s |\n", name, worst[name], most[name], where[name], verdict
    }
    print "\n| ns per item (ratio) | 1e4 | 1e5 | 1e6 | 1.2e6 | 1e7 |\n" rule(6)
    for (i = 1; i <= row_count; ++i) print cells(rows[i], sizes, size_count, times)
    print "\n| at other sizes | ns per item (ratio) | largest load / bound |\n" rule(3)
    for (i = 1; i <= other_count; ++i) print others[i]
    print "\n| time(1e6) / time(1e5) | best fit: one resource | two | isf | next fit | bound |"
    print rule(6)
    for (i = 1; i <= set_count; ++i) print cells(sets[i], packers, packer_count, growth)
    print "\n| groups | lower bound | best fit | % above: best fit | isf | next fit |\n" rule(6)
    for (i = 1; i <= group_count; ++i) print groups[i]
    print "\n| improve_packing, % above the bound (ns per sample) | best fit | 1 pass | 4 | 16 | 64 |\n" rule(6)
    for (i = 1; i <= improved_count; ++i) print improved[i]
    print "\n| online_packer, percent full | best fit of all | buffer 32 | 256 | 4096 |" \
      " percent more groups: 32 | 256 | 4096 |\n" rule(8)
    for (i = 1; i <= stream_count; ++i) print streams[i]
    exit missed != 0
  }
' "$results"/*.json
