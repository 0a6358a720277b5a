#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# license.sh FOLDER: each source below FOLDER names its license in the first line, or behind `#!`.
set -euo pipefail

root=${1:?usage: license.sh FOLDER}
cd "$root"
folders=()
for folder in .ci bench cmake examples include scripts tests; do
  [[ -d $folder ]] && folders+=("$folder")
done
lacking=$(find "${folders[@]}" -type f \( -name '*.[ch]pp' -o -name '*.cppm' -o -name '*.cu' -o -name '*.cuh' -o -name '*.h' \
  -o -name '*.py' -o -name '*.pyi' -o -name '*.sh' -o -name '*.awk' -o -name '*.cmake' -o -name '*.cmake.in' \
  -o -name CMakeLists.txt \) -exec awk '
    FNR == 1 && name { print name }
    FNR == 1 { name = FILENAME }
    FNR <= 2 && /SPDX-License-Identifier: Apache-2\.0/ { name = "" }
    FNR == 2 { if (name) print name; name = ""; nextfile }' {} + | sort)
[[ -z $lacking ]] && exit 0
printf 'these files do not name their license:\n%s\n' "$lacking" >&2
exit 1
