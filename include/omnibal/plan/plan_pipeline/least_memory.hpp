#pragma once

/// \file
/// By how much the memory of stages falls short, whatever the choices.

#include <omnibal/check.hpp>
#include <omnibal/config.hpp>
#include <omnibal/detail/conversions.hpp>
#include <omnibal/partition/partition_layers_options.hpp>
#include <omnibal/partition/partition_result.hpp>
#include <omnibal/partition/partition_throughput.hpp>
#include <omnibal/plan/plan_pipeline/integer_layers.hpp>
#include <omnibal/plan/plan_pipeline/stage_budgets.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

namespace omnibal::inline v0::detail {

/// For each limit on transient bytes, the fewest bytes that layers keep within it.
class fewest_bytes {
 public:
  fewest_bytes(integer_layers const& layers, std::vector<std::int64_t> const& limits)
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

  /// False where one of the layers has no choice within the limit.
  [[nodiscard]] bool exist(std::size_t limit, std::size_t first, std::size_t last) const {
    return at(limit, first).impossible == at(limit, last).impossible;
  }
  [[nodiscard]] int128 operator()(std::size_t limit, std::size_t first, std::size_t last) const {
    return at(limit, last).bytes - at(limit, first).bytes;
  }

 private:
  struct sum {
    int128 bytes;
    /// The layers without any choice within the limit.
    std::uint32_t impossible;
  };

  [[nodiscard]] sum const& at(std::size_t limit, std::size_t layer) const {
    return before_[limit * stride_ + layer];
  }

  /// Choices come by ascending bytes.
  static void add(std::span<whole_choice const> layer, std::int64_t limit, sum& sums) {
    for (auto const& way : layer) {
      if (way.transient_bytes > limit) continue;
      sums.bytes += way.bytes;
      return;
    }
    ++sums.impossible;
  }

  std::size_t stride_;
  std::vector<sum> before_;
};

/// By how much stages lack memory, for all numbers that the transient bytes of a choice can be.
class least_memory {
 public:
  least_memory(integer_layers const& layers, stage_budgets const& rooms)
      : layers_(layers),
        rooms_(rooms),
        limits_(layers.transient_bytes()),
        fewest_(layers, limits_) {}

  /// No shortfall is larger; one that would be has this value.
  static constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max() - 1;

  /// What must be added to the memory of a stage for the layers [first, last).
  [[nodiscard]] std::int64_t shortfall(std::size_t stage, std::size_t first,
                                       std::size_t last) const {
    int128 least = least_needed(first, last, rooms_.in_flight[stage]);
    least += layers_.state_bytes(first, last);
    least += rooms_.reserve[stage];
    least -= rooms_.memory[stage];
    return saturate_cast<std::int64_t>(std::clamp<int128>(least, 0, most));
  }

 private:
  /// Higher limits let the layers keep less, so that no lower limit is better than the lowest one
  /// with what a higher one keeps. Only where the kept bytes change is a limit looked at.
  [[nodiscard]] int128 least_needed(std::size_t first, std::size_t last,
                                    std::int64_t in_flight) const {
    auto const is_impossible = [&](std::size_t k) { return !fewest_.exist(k, first, last); };
    // Above 2^64 the shortfall is too large whatever the memory, and products would be too.
    constexpr int128 too_many = static_cast<int128>(1) << 64;
    auto const kept = [&](std::size_t k) { return std::min(fewest_(k, first, last), too_many); };
    int128 least = static_cast<int128>(1) << 126;
    if (limits_.empty() || is_impossible(limits_.size() - 1)) return least;
    std::size_t const lowest = first_without(0, limits_.size() - 1, is_impossible);
    for (std::size_t end = limits_.size(); end > lowest;) {
      int128 const bytes = kept(end - 1);
      if (in_flight * bytes + limits_[lowest] >= least) break;
      end = first_without(lowest, end - 1, [&](std::size_t k) { return kept(k) != bytes; });
      least = std::min(least, in_flight * bytes + limits_[end]);
    }
    return least;
  }

  /// The first number for which `is_true` no longer holds. Precondition: it does not for `last`.
  template <class Condition>
  [[nodiscard]] static std::size_t first_without(std::size_t first, std::size_t last,
                                                 Condition const& is_true) {
    while (first != last) {
      std::size_t const middle = first + (last - first) / 2;
      if (is_true(middle)) {
        first = middle + 1;
      } else {
        last = middle;
      }
    }
    return first;
  }

  integer_layers const& layers_;
  stage_budgets const& rooms_;
  std::vector<std::int64_t> limits_;
  fewest_bytes fewest_;
};

/// The cuts with the smallest shortfall of any stage; its `bottleneck` is that. Errors:
/// `std::overflow_error` where it is 2^63 - 2 or more.
[[nodiscard]] inline partition_result<std::int64_t> find_missing_memory(
    std::string_view function, integer_layers const& layers, stage_budgets const& rooms,
    partition_constraints const& constraints) {
  least_memory const memory(layers, rooms);
  auto const shortfall = [&](std::size_t stage, std::size_t first, std::size_t last) {
    return memory.shortfall(stage, first, last);
  };
  auto result = stages_for(function, layers.size(), rooms.memory.size(), {shortfall, fits_always{}},
                           0, {}, constraints);
  result.missing_bytes = result.bottleneck;
  if (result.status != solve_status::solved) return result;
  if (result.bottleneck == least_memory::most) throw_overflow(function, "the missing memory");
  for (std::size_t s = 0; s + 1 < result.boundaries.size(); ++s) {
    if (shortfall(s, result.boundaries[s], result.boundaries[s + 1]) != result.bottleneck) continue;
    result.stage = static_cast<std::uint32_t>(s);
    break;
  }
  return result;
}

}  // namespace omnibal::inline v0::detail
