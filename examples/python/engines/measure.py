# SPDX-License-Identifier: Apache-2.0
"""Measures the jobs on this machine: time, processor time, memory, bytes over sockets, digest.

    python measure.py [local dask spark ray] [-- --samples 100000000 --shards 16]

Memory is the largest sum of the proportional set sizes of all processes of a job, five times per
second. Bytes over sockets are those of the loopback interface, of all programs of the machine. The
last column is the digest of the groups of all shards, which is the same for all jobs.
"""

import os
import pathlib
import subprocess
import sys
import time

FOLDER = pathlib.Path(__file__).parent


def family(root):
    """Returns the processes that descend from a process, and the process itself."""
    parents = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                pass  # The process has ended.
    result = [root]
    for process in result:
        result += [child for child, parent in parents.items() if parent == process]
    return result


def usage(process):
    """Returns bytes of memory and seconds of processor time of a process that may have ended."""
    try:
        memory = pathlib.Path(f"/proc/{process}/smaps_rollup").read_text()
        times = pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:13]
    except OSError:
        return 0, 0.0
    size = sum(int(line.split()[1]) for line in memory.splitlines() if line.startswith("Pss:"))
    return 1024 * size, sum(map(int, times)) / os.sysconf("SC_CLK_TCK")


def loopback_bytes():
    lines = pathlib.Path("/proc/net/dev").read_text().splitlines()
    return next(int(line.split()[9]) for line in lines if line.split()[0] == "lo:")


def measure(name, arguments):
    """Runs a job and returns the cells of its row."""
    start, sent = time.monotonic(), loopback_bytes()
    job = subprocess.Popen([sys.executable, FOLDER / f"{name}_job.py", *arguments],
                           stdout=subprocess.PIPE, text=True)
    memory, seconds = 0, {}
    while job.poll() is None:
        found = {process: usage(process) for process in family(job.pid)}
        memory = max(memory, sum(size for size, _ in found.values()))
        for process, (_, own) in found.items():
            seconds[process] = max(own, seconds.get(process, 0.0))
        time.sleep(0.2)
    if job.returncode != 0:
        raise RuntimeError(f"{name}_job.py ended with {job.returncode}")
    digest = job.stdout.read().split()[-1]
    return (f"{time.monotonic() - start:.0f} s", f"{sum(seconds.values()):.0f} s",
            f"{memory / 2**30:.1f} GiB", f"{(loopback_bytes() - sent) / 1e6:.1f} MB", digest)


def main(arguments):
    end = arguments.index("--") if "--" in arguments else len(arguments)
    print("| job | time | processor time | memory | sockets | digest |")
    print("|---|---|---|---|---|---|")
    for name in arguments[:end] or ["local", "dask", "spark", "ray"]:
        print("|", " | ".join((name, *measure(name, arguments[end + 1:]))), "|", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
