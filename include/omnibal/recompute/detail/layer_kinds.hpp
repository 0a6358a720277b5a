#pragma once

/// \file
/// Layers that are nearly equal.

#include <omnibal/config.hpp>
#include <omnibal/recompute/detail/layer_fronts.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// Layers in groups whose members have as many points, with bytes and gains that differ by an eighth
/// of the largest ones at most.
class layer_kinds {
 public:
  /// False where there are more than `most_kinds`.
  [[nodiscard]] bool find(layer_fronts const& fronts, std::span<std::uint32_t const> layers,
                          std::size_t most_kinds) {
    kinds_.resize(0);
    for (std::uint32_t const layer : layers) {
      std::size_t kind = 0;
      while (kind != kinds_.size() && !is_similar(fronts[kinds_[kind].front()], fronts[layer])) {
        ++kind;
      }
      if (kind == most_kinds) return false;
      if (kind == kinds_.size()) kinds_.emplace_back();
      kinds_[kind].push_back(layer);
    }
    return true;
  }

  [[nodiscard]] std::size_t size() const { return kinds_.size(); }
  [[nodiscard]] std::span<std::uint32_t const> operator[](std::size_t kind) const {
    return kinds_[kind];
  }

 private:
  [[nodiscard]] static bool is_near(std::int64_t left, std::int64_t right, std::int64_t largest) {
    std::int64_t const difference = left > right ? left - right : right - left;
    return difference <= largest / 8;
  }

  [[nodiscard]] static bool is_similar(std::span<front_point const> left,
                                       std::span<front_point const> right) {
    if (left.size() != right.size()) return false;
    for (std::size_t p = 1; p != left.size(); ++p) {
      if (!is_near(left[p].bytes, right[p].bytes, left.back().bytes) ||
          !is_near(left[p].gain, right[p].gain, left.back().gain)) {
        return false;
      }
    }
    return true;
  }

  std::vector<std::vector<std::uint32_t>> kinds_;
};

}  // namespace omnibal::inline v0::detail
