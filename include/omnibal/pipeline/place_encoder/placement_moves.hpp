// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Random changes of the lists of a pipeline with an encoder, for a local search.

#include <omnibal/pipeline/detail/encoder_problem.hpp>
#include <omnibal/pipeline/encoder_work.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace omnibal::inline v0::detail {

/// Moves pieces of an encoder between devices and within their lists.
template <class T>
class placement_moves {
 public:
  explicit placement_moves(encoder_problem<T> const& problem) : problem_(problem) {}

  /// Moves a random piece to a random device, or one of its two operations to another index of its
  /// list. The forward pass stays before the backward pass.
  void move(placed_lists& lists) {
    std::uint64_t const piece = rng::below(random_, problem_.work.size());
    found const from = find(lists, piece);
    auto& list = lists[from.device];
    placed_operation const forward = list[from.forward];
    placed_operation const backward = list[from.backward];
    erase(list, from.backward);
    erase(list, from.forward);
    switch (rng::below(random_, 3)) {
      case 0: {
        auto const& devices = problem_.encoder_devices;
        auto& to = lists[devices[rng::below(random_, devices.size())]];
        std::size_t const first = rng::below(random_, to.size() + 1);
        insert(to, first + rng::below(random_, to.size() + 1 - first), backward);
        insert(to, first, forward);
        return;
      }
      case 1:
        insert(list, from.backward - 1, backward);
        insert(list, random_index(from.forward, 0, from.backward - 1), forward);
        return;
      default:
        insert(list, random_index(from.backward - 1, from.forward, list.size()), backward);
        insert(list, from.forward, forward);
    }
  }

 private:
  static constexpr std::size_t max_shift = 4;

  /// The device of a piece, and the indices of its operations in the list of the device.
  struct found {
    std::size_t device = 0;
    std::size_t forward = 0;
    std::size_t backward = 0;
  };

  [[nodiscard]] found find(placed_lists const& lists, std::uint64_t piece) const {
    found result;
    for (std::uint32_t const d : problem_.encoder_devices) {
      for (std::size_t i = 0; i != lists[d].size(); ++i) {
        placed_operation const& one = lists[d][i];
        if (one.part != model_part::encoder) continue;
        if (problem_.piece(one.micro_batch, one.chunk) != piece) continue;
        result.device = d;
        (one.kind == operation_kind::forward ? result.forward : result.backward) = i;
      }
    }
    return result;
  }

  /// Returns a random index from `least` to `most`. With probability 1/2 the index differs from
  /// `index` by at most `max_shift`.
  [[nodiscard]] std::size_t random_index(std::size_t index, std::size_t least, std::size_t most) {
    if (rng::below(random_, 2) == 0) {
      least = std::max(least, index - std::min(index, max_shift));
      most = std::min(most, index + max_shift);
    }
    return least + rng::below(random_, most - least + 1);
  }

  static void erase(std::vector<placed_operation>& list, std::size_t index) {
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(index));
  }
  static void insert(std::vector<placed_operation>& list, std::size_t index,
                     placed_operation const& operation) {
    list.insert(list.begin() + static_cast<std::ptrdiff_t>(index), operation);
  }

  encoder_problem<T> const& problem_;
  rng::engine random_{0};
};

}  // namespace omnibal::inline v0::detail
