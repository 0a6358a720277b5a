#pragma once

/// \file
/// By how much the memory of stages falls short, whatever the choices.

#include <omnibal/check.hpp>
#include <omnibal/config.hpp>
#include <omnibal/partition/constraints.hpp>
#include <omnibal/partition/detail/best_stages.hpp>
#include <omnibal/partition/detail/step_time.hpp>
#include <omnibal/partition/partition_options.hpp>
#include <omnibal/partition/partition_result.hpp>
#include <omnibal/plan/detail/stage_rooms.hpp>
#include <omnibal/plan/detail/whole_layers.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

namespace omnibal::inline v0::detail {

/// For each number that the transient bytes of a choice can be, the fewest bytes that the first
/// layers keep without more transient bytes.
class least_memory {
 public:
  least_memory(std::string_view function, whole_layers const& layers, stage_rooms const& rooms)
      : function_(function), layers_(layers), rooms_(rooms) {
    for (auto const& way : layers.all()) limits_.push_back(way.transient_bytes);
    std::sort(limits_.begin(), limits_.end());
    limits_.erase(std::unique(limits_.begin(), limits_.end()), limits_.end());
    for (std::int64_t const limit : limits_) {
      sum sums{};
      before_.push_back(sums);
      for (std::size_t l = 0; l != layers.size(); ++l) {
        add(l, limit, sums);
        before_.push_back(sums);
      }
    }
  }

  /// What must be added to the memory of a stage for the layers [first, last).
  [[nodiscard]] std::int64_t shortfall(std::size_t stage, std::size_t first,
                                       std::size_t last) const {
    int128 least = static_cast<int128>(1) << 126;
    for (std::size_t k = 0; k != limits_.size(); ++k) {
      sum const& begin = before_[k * (layers_.size() + 1) + first];
      sum const& end = before_[k * (layers_.size() + 1) + last];
      if (begin.impossible != end.impossible) continue;
      least = std::min(least, rooms_.in_flight[stage] * (end.bytes - begin.bytes) + limits_[k]);
    }
    least += layers_.state_bytes(first, last);
    least += rooms_.reserve[stage];
    least -= rooms_.memory[stage];
    if (least >= std::numeric_limits<std::int64_t>::max()) {
      throw_overflow(function_, "the fewest bytes of a stage");
    }
    return static_cast<std::int64_t>(std::max<int128>(least, 0));
  }

 private:
  struct sum {
    int128 bytes;
    /// The layers without any choice within the limit.
    std::uint32_t impossible;
  };

  void add(std::size_t layer, std::int64_t limit, sum& sums) const {
    for (auto const& way : layers_[layer]) {
      if (way.transient_bytes > limit) continue;
      sums.bytes += way.bytes;
      return;
    }
    ++sums.impossible;
  }

  std::string_view function_;
  whole_layers const& layers_;
  stage_rooms const& rooms_;
  std::vector<std::int64_t> limits_;
  std::vector<sum> before_;
};

/// The cuts with the smallest shortfall of any stage; its `bottleneck` is that.
[[nodiscard]] inline partition_result<std::int64_t> find_missing_memory(
    std::string_view function, whole_layers const& layers, stage_rooms const& rooms,
    partition_constraints const& constraints) {
  least_memory const memory(function, layers, rooms);
  auto const shortfall = [&](std::size_t stage, std::size_t first, std::size_t last) {
    return memory.shortfall(stage, first, last);
  };
  auto result = best_stages(function, layers.size(), rooms.memory.size(), shortfall, fits_always{},
                            partition_options<std::int64_t>{.constraints = constraints},
                            step_time<std::int64_t>{});
  result.missing_bytes = result.bottleneck;
  if (result.status != partition_status::ok) return result;
  for (std::size_t s = 0; s + 1 < result.boundaries.size(); ++s) {
    if (shortfall(s, result.boundaries[s], result.boundaries[s + 1]) != result.bottleneck) continue;
    result.stage = static_cast<std::uint32_t>(s);
    break;
  }
  return result;
}

}  // namespace omnibal::inline v0::detail
