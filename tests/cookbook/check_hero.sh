#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Demands that docs/pictures/NAME.svg is what its script draws of the plan that the program computes.
#
# usage: check_hero.sh PYTHON PICTURES PROGRAM NAME
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$1" "$2/$4.py" "$3" "$work/$4.svg"
cmp "$2/$4.svg" "$work/$4.svg"
