#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# In place of nvcc: what it "compiles" are scripts that do what the environment says of their names.
# FAILING, BROKEN, SLOW: programs that fail, that do not compile, and that last until they are stopped.
# CALLS: a file that gets a line for each run. DEVICE: the name of the device.
set -euo pipefail

case $1 in
  --list-gpu-code) echo sm_90 && exit ;;
  --list-gpu-arch) echo compute_90 && exit ;;
  --version) echo 'release 13.0, a stand-in' && exit ;;
esac
# It reads its input to the end, since `echo | nvcc` fails if nobody reads.
[[ " $* " != *' -E '* ]] || { cat >/dev/null && exit 0; }
program=
while (($# != 0)); do
  [[ $1 != -o ]] || program=$2
  shift
done
name=$(basename "$program")
[[ " ${BROKEN:-} " != *" $name "* ]] || { echo 'error: it does not compile' && exit 1; }
if [[ $name == device ]]; then
  # shellcheck disable=SC2016
  printf '#!/bin/sh\nprintf "90\\n%%s\\n" "$DEVICE"\n' >"$program"
elif [[ $name == program ]]; then
  # That of two_libraries.sh.
  printf '#!/bin/sh\necho "binding file libsecond.so [0] to libcudart.so" >&2\n' >"$program"
else
  cat >"$program" <<'END'
#!/usr/bin/env bash
name=$(basename "$0")
echo "$name${1:+ $1}" >>"$CALLS"
[[ " ${SLOW:-} " != *" $name "* ]] || exit 124
[[ $name != time_* ]] || printf 'TIME\t%s at work\t10.0\ta copy\t5.0\t2.00\t<= 20 us\theld\n' "$name"
[[ " ${FAILING:-} " != *" $name "* ]] || { echo 'FAILED: a comparison' && exit 1; }
echo '5 comparisons, 0 failed'
END
fi
chmod +x "$program"
