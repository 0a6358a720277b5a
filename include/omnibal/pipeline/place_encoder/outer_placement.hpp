// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Places the operations of an encoder before and after the whole language model.

#include <omnibal/pipeline/detail/encoder_problem.hpp>
#include <omnibal/pipeline/encoder_work.hpp>
#include <omnibal/pipeline/schedule.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace omnibal::inline v0::detail {

/// Returns lists in which the forward passes of the encoder come first and its backward passes
/// last. Micro-batches are assigned in the order of `order`; each piece is assigned to the device
/// that has the least work of the encoder so far.
template <class T>
[[nodiscard]] placed_lists outer_placement(encoder_problem<T> const& problem,
                                           std::vector<std::uint32_t> const& order) {
  placed_lists lists(problem.devices);
  placed_lists backward(problem.devices);
  std::vector<T> work(problem.devices);
  for (std::uint32_t const m : order) {
    for (std::uint32_t j = 0; j != problem.pieces; ++j) {
      std::uint32_t const d = *std::ranges::min_element(
          problem.encoder_devices, {}, [&](std::uint32_t one) { return work[one]; });
      auto const& piece = problem.work[problem.piece(m, j)];
      work[d] += piece.forward + piece.backward;
      lists[d].push_back({model_part::encoder, operation_kind::forward, j, m});
      backward[d].push_back({model_part::encoder, operation_kind::backward, j, m});
    }
  }
  for (std::size_t s = 0; s != problem.stages; ++s) {
    for (auto const& one : problem.language[s]) {
      lists[s].push_back({model_part::language, one.kind, one.chunk, one.micro_batch});
    }
  }
  for (std::size_t d = 0; d != lists.size(); ++d) {
    lists[d].insert(lists[d].end(), backward[d].begin(), backward[d].end());
  }
  return lists;
}

}  // namespace omnibal::inline v0::detail
