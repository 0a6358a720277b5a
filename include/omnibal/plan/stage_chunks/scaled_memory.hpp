// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The bytes and the memory of stages, summed over the moments of a peak and scaled to few bits.

#include <omnibal/config.hpp>
#include <omnibal/plan/detail/integer_layers.hpp>
#include <omnibal/plan/stage_chunks/chunk_choices.hpp>
#include <omnibal/plan/stage_chunks/chunk_problem.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace omnibal::inline v0::detail {

/// The bytes that stages keep and the bytes that they may keep, without transient bytes. They are
/// sums over all moments that can be a peak, divided by 2^`shift` and rounded down. The sum over
/// all layers then has at most `byte_bits` bits. If a plan fits into the memory at each moment, its
/// sums fit too.
class scaled_memory {
 public:
  static constexpr int byte_bits = 36;

  scaled_memory(chunk_problem const& problem, chunk_choices const& choices) : problem_(problem) {
    for (std::size_t v = 0; v != problem.virtual_stages(); ++v) {
      units_.push_back(choices.unit_sums(problem.places.stage[v])[problem.places.chunk[v]]);
    }
    find_shift();
    std::int64_t const transient = min_transient_bytes();
    // Larger than the bytes of all layers.
    constexpr int128 most_room = static_cast<int128>(1) << (byte_bits + 4);
    for (std::size_t s = 0; s != problem.stages(); ++s) {
      int128 const room =
          static_cast<int128>(problem.budgets.memory[s]) - problem.budgets.reserve[s] - transient;
      rooms_.push_back(std::clamp<int128>((room * moments(s)) >> shift_, -most_room, most_room));
    }
  }

  [[nodiscard]] int shift() const { return shift_; }
  /// Returns the number of moments of a stage.
  [[nodiscard]] int128 moments(std::size_t stage) const {
    return static_cast<int128>(problem_.budgets.chunks[stage].size());
  }
  /// Returns the units of a virtual stage, summed over the moments.
  [[nodiscard]] int128 units(std::size_t v) const { return units_[v]; }
  /// Returns the scaled bytes that a stage may keep.
  [[nodiscard]] int128 room(std::size_t stage) const { return rooms_[stage]; }
  /// Returns the scaled bytes of a layer on a virtual stage with this choice.
  [[nodiscard]] int128 bytes(std::size_t v, std::size_t layer, whole_choice const& way) const {
    int128 const states =
        problem_.layers.state_bytes(layer, layer + 1) * moments(problem_.places.stage[v]);
    return (units_[v] * way.bytes + states) >> shift_;
  }

 private:
  void find_shift() {
    int128 most_units = 1;
    for (int128 const sum : units_) most_units = std::max(most_units, sum);
    int128 most_moments = 1;
    for (std::size_t s = 0; s != problem_.stages(); ++s) {
      most_moments = std::max(most_moments, moments(s));
    }
    int128 most = 0;
    for (std::size_t l = 0; l != problem_.layers.size(); ++l) {
      std::int64_t largest = 0;
      for (auto const& way : problem_.layers[l]) largest = std::max(largest, way.bytes);
      most += most_units * largest + problem_.layers.state_bytes(l, l + 1) * most_moments;
    }
    while (most >> shift_ >= static_cast<int128>(1) << byte_bits) ++shift_;
  }

  /// Returns the smallest number of transient bytes that any stage requires.
  [[nodiscard]] std::int64_t min_transient_bytes() const {
    if (problem_.layers.size() == 0 || problem_.rules.may_be_empty) return 0;
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    for (std::size_t l = 0; l != problem_.layers.size(); ++l) {
      for (auto const& way : problem_.layers[l]) least = std::min(least, way.transient_bytes);
    }
    return least;
  }

  chunk_problem const& problem_;
  std::vector<int128> units_;
  int shift_ = 0;
  std::vector<int128> rooms_;
};

}  // namespace omnibal::inline v0::detail
