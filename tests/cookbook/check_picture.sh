#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Demands that PICTURE.svg is what PICTURE.py draws of the results that the program computes.
#
# usage: check_picture.sh PYTHON PICTURE PROGRAM
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$1" "$2.py" "$3" "$work/picture.svg"
cmp "$2.svg" "$work/picture.svg"
