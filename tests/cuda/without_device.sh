#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A program that needs a device and sees none says so in one line and returns 77.
# usage: without_device.sh PROGRAM ARGUMENT...
set -uo pipefail

text=$(CUDA_VISIBLE_DEVICES='' "$@" 2>&1)
status=$?
echo "$text"
if ((status != 77)); then
  echo "returns $status, must return 77"
  exit 1
fi
if (($(wc -l <<<"$text") != 1)); then
  echo "says more than one line"
  exit 1
fi
grep -q 'there is no NVIDIA driver\|the driver shows no device' <<<"$text"
