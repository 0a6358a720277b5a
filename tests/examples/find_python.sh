# SPDX-License-Identifier: Apache-2.0
# Sourced by the scripts of this folder: sets `python` to the first python3 that has NumPy, else to the
# first one that runs, and goes to a folder `work` that is removed at the end. Exit status 77: there
# is no python3. OMNIBAL_PYTHON is tried first.

python=
has_numpy=no
for candidate in "${OMNIBAL_PYTHON:-}" $(type -ap python3); do
  [ -n "$candidate" ] && "$candidate" -c '' 2>/dev/null || continue
  [ -n "$python" ] || python=$candidate
  if "$candidate" -c 'import numpy' 2>/dev/null; then
    python=$candidate
    # shellcheck disable=SC2034
    has_numpy=yes
    break
  fi
done
[ -n "$python" ] || exit 77
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
