#pragma once

/// \file
/// What is known of a stage before its cost is asked for: a lower bound, and the memory.

#include <omnibal/check.hpp>
#include <omnibal/partition/constraints.hpp>
#include <omnibal/partition/detail/chain_sums.hpp>
#include <omnibal/partition/empty_stages.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace omnibal::inline v0::detail {

/// Throws unless a list has as many elements as there are layers or stages.
inline void check_size(std::string_view function, std::string_view argument, std::size_t size,
                       std::size_t count, std::string_view what) {
  if (size == count) return;
  throw_invalid(function, std::string(argument) + " has " + to_text(size) + " values for " +
                              to_text(count) + " " + std::string(what));
}

/// An additive lower bound of the cost of a stage.
template <class C>
class stage_bound {
 public:
  stage_bound(std::string_view function, std::size_t layers, std::size_t stages,
              std::span<C const> base, std::span<double const> speeds)
      : is_known_(!base.empty()), stages_(stages), speeds_(speeds.begin(), speeds.end()) {
    if (base.empty()) {
      sums_.assign(layers + 1, C{});
    } else {
      check_size(function, "base", base.size(), layers, "layers");
      largest_ = sum_costs(function, base, std::identity{}, sums_, {"base", "the sum of base"});
    }
    if (!speeds.empty()) check_size(function, "speeds", speeds.size(), stages, "stages");
    for (std::size_t s = 0; s != speeds.size(); ++s) {
      check_positive(function, "speeds", s, speeds[s]);
    }
    if constexpr (std::floating_point<C>) {
      // A caller may add the layers of a stage in another order.
      slack_ = sums_.back() * static_cast<C>(layers + 4) * std::numeric_limits<C>::epsilon();
    }
  }

  /// False where nothing was given.
  [[nodiscard]] bool is_known() const { return is_known_; }

  /// At least this much the layers [first, last) cost as that stage.
  [[nodiscard]] C operator()(std::size_t stage, std::size_t first, std::size_t last) const {
    C const sum = static_cast<C>(sums_[last] - sums_[first] - slack_);
    return speeds_.empty() ? sum : divided(sum, speeds_[stage]);
  }

  /// At least this much the most expensive stage costs.
  [[nodiscard]] C least_bottleneck() const {
    if (!speeds_.empty()) {
      return divided(sums_.back(), std::accumulate(speeds_.begin(), speeds_.end(), 0.0));
    }
    return std::max(largest_, least_largest(sums_.back(), stages_)) - slack_;
  }

  /// At least this much all stages cost together.
  [[nodiscard]] C least_sum() const {
    C const sum = static_cast<C>(sums_.back() - slack_ * static_cast<C>(stages_));
    if (speeds_.empty()) return sum;
    return divided(sum, *std::max_element(speeds_.begin(), speeds_.end()));
  }

 private:
  /// Rounds down, also where the quotient is rounded.
  [[nodiscard]] static C divided(C sum, double speed) {
    double const quotient = static_cast<double>(sum) / speed * (1 - 0x1p-40);
    if constexpr (std::floating_point<C>) {
      return quotient;
    } else {
      return quotient < 0x1p62 ? static_cast<C>(quotient) : C{1} << 62;
    }
  }

  bool is_known_;
  std::size_t stages_;
  std::vector<C> sums_;
  std::vector<double> speeds_;
  C largest_{};
  C slack_{};
};

/// What the layers take in memory, and what the stages have.
class stage_memory {
 public:
  stage_memory(std::string_view function, std::size_t layers, std::size_t stages,
               partition_constraints const& constraints)
      : devices_(constraints.devices == 0 ? stages : constraints.devices),
        is_limited_(!constraints.capacity.empty()) {
    if (stages % devices_ != 0) {
      throw_invalid(function,
                    to_text(stages) + " stages are no multiple of devices, " + to_text(devices_));
    }
    if (!is_limited_ && constraints.bytes.empty()) return;
    auto const bytes = constraints.bytes.values();
    auto const capacity = constraints.capacity.values();
    check_size(function, "bytes", bytes.size(), layers, "layers");
    if (capacity.size() != 1) {
      check_size(function, "capacity", capacity.size(), devices_, "stages or devices");
    }
    sum_costs(function, bytes, std::identity{}, sums_, {"bytes", "the sum of the bytes"});
    capacity_.resize(stages);
    for (std::size_t s = 0; s != stages; ++s) {
      std::size_t const index = capacity.size() == 1 ? 0 : s % devices_;
      check_weight(function, "capacity", index, capacity[index]);
      capacity_[s] = capacity[index];
    }
  }

  [[nodiscard]] bool is_limited() const { return is_limited_; }
  /// Whether a device has more than one stage.
  [[nodiscard]] bool is_shared() const { return is_limited_ && devices_ != capacity_.size(); }
  [[nodiscard]] std::size_t devices() const { return devices_; }

  [[nodiscard]] std::int64_t bytes(std::size_t first, std::size_t last) const {
    return sums_[last] - sums_[first];
  }
  /// Of the device on which the stage runs.
  [[nodiscard]] std::int64_t capacity(std::size_t stage) const { return capacity_[stage]; }

  /// Whether a stage has room for the layers if it is alone on its device.
  [[nodiscard]] bool fits(std::size_t stage, std::size_t first, std::size_t last) const {
    return !is_limited_ || bytes(first, last) <= capacity_[stage];
  }

  /// Adds to all capacities.
  void enlarge(std::int64_t more) {
    for (std::int64_t& value : capacity_) {
      value += std::min(more, std::numeric_limits<std::int64_t>::max() - value);
    }
  }

 private:
  std::size_t devices_;
  bool is_limited_;
  std::vector<std::int64_t> sums_;
  std::vector<std::int64_t> capacity_;
};

}  // namespace omnibal::inline v0::detail
