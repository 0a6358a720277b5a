#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the example program pack_dataset and packs a data set into balanced mini-batches.
# usage: main_job.sh [OPTIONS OF pack_dataset]    (none: a synthetic data set; the plan goes to ./plan)
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

"$root/scripts/setup.sh" main_job
log=$(mktemp)
trap 'rm -f "$log"' EXIT
printf 'building pack_dataset, about a minute the first time\n' >&2
if ! (cd "$root" && cmake --workflow --preset main_job) >"$log" 2>&1; then
  cat "$log" >&2
  exit 1
fi

"$root/build/main_job/examples/pack_dataset" "$@"
