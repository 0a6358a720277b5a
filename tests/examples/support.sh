# SPDX-License-Identifier: Apache-2.0
# Sourced by the scripts of this folder: sets `program` from their first argument, goes to a folder
# that is removed at the end, and counts what `complain` is called for.

set -u
program=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failures=0

# complain TEXT: the test fails; shows what the program wrote into the files `message` and `output`.
complain() {
  echo "FAILED: $1"
  local file
  for file in message output; do
    [ ! -s "$file" ] || sed "s/^/  $file: /" "$file"
  done
  failures=$((failures + 1))
}

# npy_header SHAPE : that of a NumPy array of bytes, which follow it.
npy_header() {
  local header="{'descr': '|u1', 'fortran_order': False, 'shape': $1, }"
  # shellcheck disable=SC2059
  printf "\\x93NUMPY\\x01\\x00\\x$(printf %02x $((${#header} + 1)))\\x00%s\n" "$header"
}
