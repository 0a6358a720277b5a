#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# context_step prints the same for threads and for processes of MPI, and finds all outputs right on
# other numbers of them.
#
# usage: context_step.sh PROGRAM MPIEXEC NUMPROC_FLAG
# shellcheck source=support.sh
. "$(dirname "$0")/support.sh"
mpiexec=("${@:2}")

"$program" >threads 2>message || complain "threads: it fails"
[ "$(grep -c '^micro-step ' threads)" -eq 8 ] || complain "threads: rows are missing"
"${mpiexec[@]}" 4 "$program" --mpi >processes 2>message || complain "processes: it fails"
diff threads processes >output || complain "processes print something else"
for ranks in 3 5; do
  "${mpiexec[@]}" "$ranks" "$program" --mpi >processes 2>message ||
    complain "$ranks processes: it fails"
  grep -q '^micro-step ' processes || complain "$ranks processes: no rows"
  grep -q 'wrong' processes && complain "$ranks processes: an output is wrong"
done

[ "$failures" -eq 0 ] && echo "all right"
exit "$((failures != 0))"
