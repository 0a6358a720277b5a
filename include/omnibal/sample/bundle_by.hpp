#pragma once

/// \file
/// Bundles of the samples that share a key.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/grouping.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <ranges>
#include <type_traits>
#include <vector>

namespace omnibal::inline v0 {

/// A functor from a sample to a key with a total order, such as a number or a name.
template <class Function, class Sample>
concept key_function = std::regular_invocable<Function const&, Sample> &&
    std::totally_ordered<demand_result<Function, Sample>> &&
    !std::floating_point<demand_result<Function, Sample>>;

struct bundle_by_fn {
  /// The samples with equal keys, such as the turns of a conversation or the clips of a video, as
  /// bundles: in the order of their first samples, with ascending samples.
  ///
  /// `key` is called once for each sample, in order. Complexity: n log n comparisons. Memory: a key
  /// and 16 bytes per sample, result included. Determinism: portable. Errors: `std::length_error`
  /// above 2^32 - 1 samples.
  template <sample_range Samples, key_function<sample_reference<Samples>> Key>
  [[nodiscard]] grouping operator()(Samples const& samples, Key const& key) const {
    std::size_t const count = std::ranges::size(samples);
    detail::check_index_count("bundle_by", "samples", count);
    std::vector<demand_result<Key, sample_reference<Samples>>> keys;
    keys.reserve(count);
    for (auto&& sample : samples) keys.push_back(std::invoke(key, sample));

    std::vector<std::uint32_t> by_key(count);
    std::iota(by_key.begin(), by_key.end(), std::uint32_t{0});
    std::sort(by_key.begin(), by_key.end(), [&](std::uint32_t left, std::uint32_t right) {
      if (keys[left] == keys[right]) return left < right;
      return keys[left] < keys[right];
    });
    // Where in `by_key` the bundle of a first sample begins.
    constexpr std::uint32_t not_first = max_index_count;
    std::vector<std::uint32_t> begin_of(count, not_first);
    for (std::size_t i = 0; i != count; ++i) {
      if (i != 0 && keys[by_key[i]] == keys[by_key[i - 1]]) continue;
      begin_of[by_key[i]] = static_cast<std::uint32_t>(i);
    }
    grouping result;
    result.reserve(count, count);
    for (std::size_t first = 0; first != count; ++first) {
      if (begin_of[first] == not_first) continue;
      for (std::size_t i = begin_of[first]; i != count && keys[by_key[i]] == keys[first]; ++i) {
        result.push(by_key[i]);
      }
      result.close();
    }
    return result;
  }
};

/// Bundles of the samples that share a key; see `bundle_by_fn`.
inline constexpr bundle_by_fn bundle_by{};

}  // namespace omnibal::inline v0
