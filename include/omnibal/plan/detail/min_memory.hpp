// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The smallest number of bytes that layers keep, and the bytes by which stages exceed their
/// memory.

#include <omnibal/check.hpp>
#include <omnibal/config.hpp>
#include <omnibal/detail/conversions.hpp>
#include <omnibal/detail/search.hpp>
#include <omnibal/partition/partition_layers_options.hpp>
#include <omnibal/partition/partition_throughput.hpp>
#include <omnibal/plan/detail/integer_layers.hpp>
#include <omnibal/plan/detail/stage_budgets.hpp>
#include <omnibal/solve_status.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

namespace omnibal::inline v0::detail {

/// The smallest number of bytes that runs of layers keep, for each limit on the transient bytes of
/// a choice.
class min_bytes {
 public:
  min_bytes(integer_layers const& layers, std::vector<std::int64_t> const& limits)
      : stride_(layers.size() + 1) {
    for (std::int64_t const limit : limits) {
      sum sums{};
      before_.push_back(sums);
      for (std::size_t l = 0; l != layers.size(); ++l) {
        add(layers[l], limit, sums);
        before_.push_back(sums);
      }
    }
  }

  /// False if one of the layers has no choice within the limit.
  [[nodiscard]] bool exist(std::size_t limit, std::size_t first, std::size_t last) const {
    return at(limit, first).without_choice == at(limit, last).without_choice;
  }
  [[nodiscard]] int128 operator()(std::size_t limit, std::size_t first, std::size_t last) const {
    return at(limit, last).bytes - at(limit, first).bytes;
  }

 private:
  struct sum {
    int128 bytes;
    /// The number of layers without any choice within the limit.
    std::uint32_t without_choice;
  };

  [[nodiscard]] sum const& at(std::size_t limit, std::size_t layer) const {
    return before_[limit * stride_ + layer];
  }

  /// Adds the choice of a layer with the fewest bytes within the limit to `sums`. Precondition:
  /// choices come by ascending bytes.
  static void add(std::span<whole_choice const> layer, std::int64_t limit, sum& sums) {
    for (auto const& way : layer) {
      if (way.transient_bytes > limit) continue;
      sums.bytes += way.bytes;
      return;
    }
    ++sums.without_choice;
  }

  std::size_t stride_;
  std::vector<sum> before_;
};

/// The bytes by which stages exceed their memory if their layers have the best choices.
class min_memory {
 public:
  min_memory(integer_layers const& layers, stage_budgets const& rooms)
      : layers_(layers),
        rooms_(rooms),
        limits_(layers.transient_bytes()),
        fewest_(layers, limits_) {}

  /// The largest shortfall that is told apart; larger shortfalls are reported as this value.
  static constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max() - 1;

  /// The smallest number of bytes by which the layers [first, last) exceed the memory of a stage;
  /// zero if they fit.
  [[nodiscard]] std::int64_t shortfall(std::size_t stage, std::size_t first,
                                       std::size_t last) const {
    int128 least = min_needed(first, last, rooms_.in_flight[stage]);
    least += layers_.state_bytes(first, last);
    least += rooms_.reserve[stage];
    least -= rooms_.memory[stage];
    return saturate_cast<std::int64_t>(std::clamp<int128>(least, 0, most));
  }

 private:
  /// With higher limits layers keep fewer bytes. Therefore no lower limit beats the lowest limit
  /// with the kept bytes of a higher limit. The search looks only at limits at which the kept bytes
  /// change.
  [[nodiscard]] int128 min_needed(std::size_t first, std::size_t last,
                                  std::int64_t in_flight) const {
    auto const lacks_choice = [&](std::size_t k) { return !fewest_.exist(k, first, last); };
    // If layers keep more than 2^64 bytes, they exceed every memory, and products of such bytes
    // would overflow.
    constexpr int128 too_many = static_cast<int128>(1) << 64;
    auto const kept = [&](std::size_t k) { return std::min(fewest_(k, first, last), too_many); };
    int128 least = static_cast<int128>(1) << 126;
    if (limits_.empty() || lacks_choice(limits_.size() - 1)) return least;
    std::size_t const lowest = first_false(0, limits_.size() - 1, lacks_choice);
    for (std::size_t end = limits_.size(); end > lowest;) {
      int128 const bytes = kept(end - 1);
      if (in_flight * bytes + limits_[lowest] >= least) break;
      end = first_false(lowest, end - 1, [&](std::size_t k) { return kept(k) != bytes; });
      least = std::min(least, in_flight * bytes + limits_[end]);
    }
    return least;
  }

  integer_layers const& layers_;
  stage_budgets const& rooms_;
  std::vector<std::int64_t> limits_;
  min_bytes fewest_;
};

/// Returns the cuts with the smallest maximum shortfall of a stage, which is the `bottleneck` of
/// the result. `shortfall(stage, first, last)` must return at most `min_memory::most`. Errors:
/// `std::overflow_error` if the smallest maximum is 2^63 - 2 or more.
template <class Shortfall>
[[nodiscard]] partition_result<std::int64_t> find_least_shortfall(
    std::string_view function, std::size_t layers, std::size_t stages, Shortfall const& shortfall,
    partition_constraints const& constraints) {
  auto result =
      stages_for(function, layers, stages, {shortfall, fits_always{}}, 0, {}, constraints);
  result.missing_bytes = result.bottleneck;
  if (result.status != solve_status::solved) return result;
  if (result.bottleneck == min_memory::most) throw_overflow(function, "the missing memory");
  for (std::size_t s = 0; s + 1 < result.boundaries.size(); ++s) {
    if (shortfall(s, result.boundaries[s], result.boundaries[s + 1]) != result.bottleneck) continue;
    result.stage = static_cast<std::uint32_t>(s);
    break;
  }
  return result;
}

/// Returns the cuts with the smallest maximum shortfall for layers with choices.
[[nodiscard]] inline partition_result<std::int64_t> find_missing_memory(
    std::string_view function, integer_layers const& layers, stage_budgets const& rooms,
    partition_constraints const& constraints) {
  min_memory const memory(layers, rooms);
  auto const shortfall = [&](std::size_t stage, std::size_t first, std::size_t last) {
    return memory.shortfall(stage, first, last);
  };
  return find_least_shortfall(function, layers.size(), rooms.memory.size(), shortfall, constraints);
}

}  // namespace omnibal::inline v0::detail
