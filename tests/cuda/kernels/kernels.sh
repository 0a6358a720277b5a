#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What the compiler makes of each kernel and of each function that it does not inline, for one
# architecture: registers, bytes of stack, of spills and of static shared memory, and, where nvdisasm
# is found, instructions, barriers, and loads and stores that are local or generic.
# usage: kernels.sh check|write|show architecture folder nvcc [options...]
# `check` fails for what exceeds the table of the architecture, which lies beside this script, for a
# kernel that does not fit the instruction cache (128 KiB), and for one of blocks with generic loads or
# stores; `write` writes the table; `show` prints one of the collectives of a block and of CUB's.
# Returns 77 where there is no table, or one of another release of nvcc.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
mode=$1 architecture=$2 out=$3
shift 3
table=$here/sm_$architecture.txt
release=$("$1" --version | sed -n 's/.*release \([0-9.]*\).*/\1/p')
if [[ $mode == check ]] && ! grep -qx "# nvcc $release" "$table" 2>/dev/null; then
  echo "skipped: $table is not of nvcc $release"
  exit 77
fi

mkdir -p "$out"
source=kernels
[[ $mode != show ]] || source=collectives
name=$out/$source.sm_$architecture
"$@" "-arch=sm_$architecture" -O3 -Xptxas -v -cubin "$here/$source.cu" -o "$name.cubin" \
  >"$name.log" 2>&1 || { cat "$name.log"; exit 1; }

disassembler=${NVDISASM:-$(command -v nvdisasm || true)}
if [[ -z $disassembler ]]; then
  packages=$(python3 -c 'import nvidia; print(*nvidia.__path__, sep="\n")' 2>/dev/null || true)
  disassembler=$(find ${packages:-/nonexistent} -path '*/bin/nvdisasm' 2>/dev/null | head -1 || true)
fi
if [[ -n $disassembler ]]; then
  # A package may bring it without the right to run it.
  if [[ ! -x $disassembler ]]; then
    install -m 755 "$disassembler" "$out/nvdisasm"
    disassembler=$out/nvdisasm
  fi
  "$disassembler" -c "$name.cubin" >"$name.sass"
else
  echo "there is no nvdisasm: instructions are not looked at"
  : >"$name.sass"
fi

# A line for each kernel. What is missing is -1.
awk '
  /Function properties for/ { kernel = $NF; next }
  /bytes stack frame/ { stack[kernel] = $1; stores[kernel] = $5; loads[kernel] = $9; next }
  /: Used [0-9]+ registers/ {
    match($0, /Used [0-9]+/); registers[kernel] = substr($0, RSTART + 5, RLENGTH - 5)
    shared[kernel] = match($0, /[0-9]+ bytes smem/) ? substr($0, RSTART, RLENGTH) + 0 : 0
    next
  }
  /^\.text\./ { kernel = substr($1, 7, length($1) - 7); seen[kernel] = 1; next }
  /^[ \t]+\/\*[0-9a-f]+\*\// {
    sub(/^[ \t]+\/\*[0-9a-f]+\*\/[ \t]+/, ""); sub(/^@!?U?P[0-9T]+[ \t]+/, "")
    ++instructions[kernel]
    if ($1 ~ /^BAR/) ++barriers[kernel]
    if ($1 ~ /^(LDL|STL)/) ++local[kernel]
    if ($1 ~ /^(LD|ST)(\.|$)/) ++generic[kernel]
  }
  END {
    for (kernel in stack) {
      if (kernel ~ /3cub/) continue
      has = kernel in seen
      print kernel, kernel in registers ? registers[kernel] : -1, stack[kernel],
        stores[kernel] + loads[kernel], kernel in shared ? shared[kernel] : -1,
        has ? instructions[kernel] : -1, has ? barriers[kernel] + 0 : -1,
        has ? local[kernel] + 0 : -1, has ? generic[kernel] + 0 : -1
    }
  }' "$name.log" "$name.sass" | while read -r kernel numbers; do
  c++filt "$kernel" | sed 's/omnibal::v0:://g; s/gpu::detail:://g; s/^void //
    s/(.*//; s/^[^<]* \([^ <]*<\)/\1/; s/for_each_block_kernel/block/; s/for_each_kernel/each/; s/grid_kernel/grid/
    s/\([0-9]\)ul/\1/g; s/ //g' | tr '\n' ' '
  echo "$numbers"
done | LC_ALL=C sort >"$name.txt"

columns='kernel registers stack spills shared instructions barriers local generic'
if [[ $mode == show ]]; then
  { echo "$columns"; cat "$name.txt"; } | column -t
  exit
fi
if [[ $mode == write ]]; then
  [[ -n $disassembler ]] || { echo "the table needs nvdisasm"; exit 1; }
  { echo "# nvcc $release"; printf '%s\n' "$columns"; cat "$name.txt"; } | awk '
    /^#/ { print; next }
    { printf "%-76s", $1; for (i = 2; i <= NF; ++i) printf " %12s", $i; print "" }' >"$table"
  exit
fi

# Few instructions more are no fault.
awk -v columns="$columns" '
  BEGIN { split(columns, column, " ") }
  FNR == 1 { ++file }
  /^#/ || $1 == "kernel" { next }
  file == 1 { limits[$1] = $0; next }
  {
    if (!($1 in limits)) { print $1 ": not in the table"; failed = 1; next }
    split(limits[$1], limit, " "); delete limits[$1]; ++kernels
    if ($6 > 8192) { print $1 ": " $6 " instructions, more than the instruction cache holds"; failed = 1 }
    if ($1 ~ /^block</ && $9 > 0) { print $1 ": " $9 " generic loads or stores"; failed = 1 }
    for (i = 2; i <= NF; ++i) {
      most = limit[i]
      if (column[i] == "instructions" && most > 0) most *= 1.05
      if ($i > most) { print $1 ": " $i " " column[i] ", at most " limit[i] " are allowed"; failed = 1 }
    }
  }
  END {
    for (kernel in limits) { print kernel ": in the table, but not in the code"; failed = 1 }
    print kernels + 0 " kernels as in the table or better"
    exit failed + 0
  }' "$table" "$name.txt"
