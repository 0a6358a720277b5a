#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Demands that docs/pictures/hero.svg is what its script draws of the plan that the program computes.
#
# usage: check_hero.sh PYTHON PICTURES PACK_DATASET
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$1" "$2/hero.py" "$3" "$work/hero.svg"
cmp "$2/hero.svg" "$work/hero.svg"
