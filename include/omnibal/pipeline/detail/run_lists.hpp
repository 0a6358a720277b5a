// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Runs of lists of operations, and the order of the passes of a micro-batch.

#include <omnibal/pipeline/schedule.hpp>

#include <cstddef>
#include <optional>
#include <vector>

namespace omnibal::inline v0::detail {

/// The result of an attempt to run an operation.
enum class run_outcome {
  ran,
  waits,  ///< an input has not been sent
  fails   ///< the lists cannot be run
};

/// Runs lists in turn. Each list runs in order until its next operation cannot run. The function
/// ends when no list can continue or an operation fails. `try_run(list, index)` tries to run an
/// operation. Returns true if all operations have run.
template <class Lists, class TryRun>
[[nodiscard]] bool run_lists(Lists const& lists, TryRun const& try_run) {
  std::vector<std::size_t> next(lists.size(), 0);
  std::size_t ended = 0;
  for (bool is_moving = true; is_moving && ended != lists.size();) {
    is_moving = false;
    ended = 0;
    for (std::size_t s = 0; s != lists.size(); ++s) {
      std::size_t const size = lists[s].size();
      std::size_t const before = next[s];
      run_outcome outcome = run_outcome::ran;
      while (next[s] != size && (outcome = try_run(s, next[s])) == run_outcome::ran) ++next[s];
      if (outcome == run_outcome::fails) return false;
      is_moving |= next[s] != before;
      if (next[s] == size) ++ended;
    }
  }
  return ended == lists.size();
}

/// A forward or backward pass of a micro-batch on a virtual stage.
struct chain_pass {
  operation_kind kind = operation_kind::forward;
  std::size_t virtual_stage = 0;
};

/// The passes of a micro-batch in order: forward on all virtual stages, then backward from the last
/// virtual stage on. Between two virtual stages is a cut; a pass of a kind sends a transfer of this
/// kind over it.
struct pass_chain {
  std::size_t virtual_stages = 1;

  /// Returns the pass that sends the input of `pass`, or no value for the first pass.
  [[nodiscard]] std::optional<chain_pass> before(chain_pass const& pass) const {
    auto const [kind, v] = pass;
    if (kind == operation_kind::forward) {
      if (v == 0) return {};
      return chain_pass{kind, v - 1};
    }
    if (v + 1 == virtual_stages) return chain_pass{operation_kind::forward, v};
    return chain_pass{kind, v + 1};
  }

  /// Returns the pass that receives the output of `pass`, or no value for the last pass.
  [[nodiscard]] std::optional<chain_pass> after(chain_pass const& pass) const {
    auto const [kind, v] = pass;
    if (kind == operation_kind::forward) {
      if (v + 1 == virtual_stages) return chain_pass{operation_kind::backward, v};
      return chain_pass{kind, v + 1};
    }
    if (v == 0) return {};
    return chain_pass{kind, v - 1};
  }
};

}  // namespace omnibal::inline v0::detail
