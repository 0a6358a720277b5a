#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs each kernel of mistakes.cu with its mistake, which must be reported, and without it.
# usage: mistakes.sh PROGRAM
set -euo pipefail

program=$1
failed=0

# check NAME TEXT: TEXT is a part of the report.
check() {
  local name=$1 text=$2 said
  for OMNIBAL_THREAD_ORDER in ascending random; do
    export OMNIBAL_THREAD_ORDER
    said=$("$program" "$name" wrong 2>&1) || true
    if ! grep -q "$text" <<<"$said"; then
      printf 'not reported: %s, %s\n%s\n' "$name" "$OMNIBAL_THREAD_ORDER" "$said"
      failed=$((failed + 1))
    fi
  done
  if ! said=$("$program" "$name" right 2>&1); then
    printf 'no mistake: %s\n%s\n' "$name" "$said"
    failed=$((failed + 1))
  fi
}

check update_of_threads 'data race'
check update_of_blocks 'data race'
check missing_barrier 'data race'
check missing_warp_barrier 'data race'
check shuffle_for_barrier 'data race'
check missing_first_fence 'data race'
check missing_last_fence 'data race'
check fences_alone 'data race'
check two_collectives 'stand-in: lane .*and others of its warp __'
check two_masks 'stand-in: .*__shfl_sync with mask 0xffffffff'
check unnamed_lane 'stand-in: lane .*which does not name lane'
check unnamed_source 'stand-in: lane .*which does not name lane 16'

printf '%d failed\n' "$failed"
[[ $failed == 0 ]]
