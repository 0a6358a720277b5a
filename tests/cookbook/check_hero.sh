#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
<<<<<<< HEAD
# Demands that docs/pictures/NAME.svg is what its script draws of the plan that the program computes.
#
# usage: check_hero.sh PYTHON PICTURES PROGRAM NAME
=======
# Demands that PICTURE.svg is what PICTURE.py draws of the results that the program computes.
#
# usage: check_hero.sh PYTHON PICTURE PROGRAM
>>>>>>> f2a2239a (docs: say when offloading pays, with measured peaks and a picture)
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
<<<<<<< HEAD
"$1" "$2/$4.py" "$3" "$work/$4.svg"
cmp "$2/$4.svg" "$work/$4.svg"
=======
"$1" "$2.py" "$3" "$work/picture.svg"
cmp "$2.svg" "$work/picture.svg"
>>>>>>> f2a2239a (docs: say when offloading pays, with measured peaks and a picture)
