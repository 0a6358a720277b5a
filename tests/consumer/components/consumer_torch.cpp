// SPDX-License-Identifier: Apache-2.0
// A user's program with the component torch: a trainer's process group becomes a communicator.

#include <omnibal/comm/c10d.hpp>
#include <omnibal/comm/communicator.hpp>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

static_assert(
    omnibal::exchanging_communicator<omnibal::c10d::communicator_ref<c10d::ProcessGroup>>);

int main() { return 0; }
