#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the example program pack_dataset and packs a data set into balanced mini-batches.
# usage: main_job.sh [OPTIONS OF pack_dataset]    (none: a synthetic data set; the plan goes to ./plan)
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

"$root/scripts/setup.sh" main_job
(cd "$root" && cmake --workflow --preset main_job)

"$root/build/examples/examples/pack_dataset" "$@"
