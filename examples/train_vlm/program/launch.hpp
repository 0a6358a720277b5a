// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Starts the processes of a run, as torchrun does for Python.

#include "options.hpp"
#include "trainer.hpp"

#include <optional>

namespace train_vlm {

/// Where this process is, or nothing where it is the one that the user started.
[[nodiscard]] std::optional<place_in_world> own_place();

/// Starts this program again as each of the ranks, with one thread each, and waits for all. They
/// are asked to stop where this process is (SIGTERM, SIGINT) and end with it. Returns an exit
/// status: 0 where all ranks have ended well. A rank that still runs half as long again and five
/// seconds after another has failed is killed.
/// Where lengths come from the standard input all ranks read what it has.
[[nodiscard]] int launch(train_options const& options, char** words);

/// True in a rank that was asked to stop.
[[nodiscard]] bool is_asked_to_stop();
/// A rank that is asked to stop ends its step first.
void stop_when_asked();

}  // namespace train_vlm
