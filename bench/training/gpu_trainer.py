# SPDX-License-Identifier: Apache-2.0
"""Trains the model of examples/train_vlm on one GPU and measures what balanced batches gain:
gpu_trainer.py [--stand-in] [--seconds N] [--parts NAME,...] PLAN_OFFLOAD

The parts run in this order and print tables: gradients, throughput, prediction, memory, replay,
curves, processes (with --stand-in), offload. PLAN_OFFLOAD is the built program
examples/plan_offload.cpp, for bench/recompute/offload_peaks.py. The package `omnibal` is installed, or
PYTHONPATH names its folder.

The model has 16-bit weights and attention of variable length. --stand-in runs a small model with
32 bits on the processor. After --seconds the program ends and names the parts that are left. The
exit status is 1 if a part misses its goal, and 77 if there is no GPU, or no package `omnibal` and
the offload part misses nothing.
"""

import argparse
import gc
import os
import pathlib
import subprocess
import sys
import time
import traceback

import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Has measure_offload.py, and the sources of the package, which must not come before the built one.
PROGRAMS = str(ROOT / "examples" / "python")
sys.path.append(PROGRAMS)


def offload(given, seconds):
    """Runs bench/recompute/offload_peaks.py on the freed device. None: no time is left."""
    if seconds <= 0:
        return None
    options = ["--stand-in"] if given.stand_in else []
    script = str(ROOT / "bench" / "recompute" / "offload_peaks.py")
    command = [sys.executable, script, given.program, *options]
    try:
        return subprocess.run(command, env={**os.environ, "PYTHONPATH": PROGRAMS}, timeout=seconds,
                              check=False).returncode == 0
    except subprocess.TimeoutExpired:
        return None


def sizes(device):
    """The model, the tiles and tokens of a pack, and the number of packs: two steps of 64 ranks."""
    from model import Size

    if not device.is_gpu:
        return Size(16, 1, 32, 2, 2, 64, 4, 12), (9, 64), 32
    layers = 24 if device.memory() > 100e9 else 12 if device.memory() > 60e9 else 4
    return Size(1024, layers // 2, 2048, layers, 16, 32768, 256, 588), (9, 4096), 128


def make_session(device, clock):
    from batches import Data, make_batch
    from model import attend_in_turn, choose_attention
    from parts import Session

    size, capacity, packs = sizes(device)
    data = Data(size, capacity, packs)
    name, attend = "scaled_dot_product_attention, sample by sample", attend_in_turn
    if device.is_gpu:
        # Builds a plan for each new size, whose time is not that of a batch.
        if hasattr(torch.backends.cuda, "enable_cudnn_sdp"):
            torch.backends.cuda.enable_cudnn_sdp(False)
        batch = make_batch(data, data.packs[0], False, device.place, device.dtype)
        name, attend = choose_attention(batch, size.heads, size.width // size.heads, device.place,
                                        device.dtype)
    session = Session(device, data, attend, clock)
    session.warm_up()
    count = sum(one.numel() for one in session.trainer.model.parameters())
    print(f"PyTorch {torch.__version__}, {count:,} parameters, attention by {name}")
    print(f"{len(data.samples)} samples in {packs} packs of at most {capacity[0]} tiles and "
          f"{capacity[1]} tokens, from a seed", flush=True)
    return session


def chosen_parts(given):
    """The functions of the trainer by name, in order."""
    import parts
    from two_processes import two_processes

    every = {one.__name__: one for one in (parts.gradients, parts.throughput, parts.prediction,
                                           parts.memory, parts.replay, parts.curves)}
    if given.stand_in:
        every["processes"] = two_processes
    return {name: one for name, one in every.items() if name in given.parts}


def run_trainer(given, clock):
    """The names of the parts that miss their goal, and of those that are left."""
    from devices import Device, OutOfTime

    session, missed, left = None, [], []
    for name, part in chosen_parts(given).items():
        print(f"\n## {name}\n", flush=True)
        begin = time.monotonic()
        try:
            clock.check()
            session = session or make_session(Device(not given.stand_in), clock)
            is_met = part(session)
        except OutOfTime:
            left.append(name)
            continue
        except (RuntimeError, ValueError):
            # Such as too little memory; the other parts may run.
            traceback.print_exc()
            is_met = False
        missed += [] if is_met else [name]
        print(f"\n{'done' if is_met else 'missed'} in {time.monotonic() - begin:.1f} s", flush=True)
    return missed, left


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--stand-in", action="store_true")
    parser.add_argument("--seconds", type=float, default=520)
    parser.add_argument("--parts", type=lambda text: text.split(","),
                        default="gradients,throughput,prediction,memory,replay,curves,processes,"
                                "offload")
    return parser.parse_args()


def main():
    given = parse()
    end = time.monotonic() + given.seconds
    if given.stand_in:
        torch.set_num_threads(1)
    elif not torch.cuda.is_available():
        print("skipped: PyTorch has no CUDA device")
        return 77
    missed, left, is_skipped = [], [], False
    try:
        from devices import Clock
        import omnibal  # noqa: F401
        missed, left = run_trainer(given, Clock(given.seconds))
    except ModuleNotFoundError as error:
        if error.name.split(".")[0] not in ("omnibal", "numpy"):
            raise
        print(f"skipped: the trainer, because python3 has no module {error.name}")
        is_skipped = True
    if "offload" in given.parts:
        print("\n## offload\n", flush=True)
        if not given.stand_in:
            gc.collect()
            torch.cuda.empty_cache()
        found = offload(given, end - time.monotonic())
        left += ["offload"] if found is None else []
        missed += ["offload"] if found is False else []
    print(f"\nmissed: {', '.join(missed) or 'nothing'}; left: {', '.join(left) or 'nothing'}")
    return 1 if missed else 77 if is_skipped else 0


if __name__ == "__main__":
    sys.exit(main())
