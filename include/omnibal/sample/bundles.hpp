// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Bundles of samples that must stay together.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/parts_of_samples.hpp>
#include <omnibal/group_loads.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/pack/packing.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <ranges>
#include <string_view>
#include <vector>

namespace omnibal::inline v0 {

/// A functor from a sample to a key with a total order, such as a number or a name.
template <class Function, class Sample>
concept key_function = std::regular_invocable<Function const&, Sample> &&
    std::totally_ordered<demand_result<Function, Sample>> &&
    !std::floating_point<demand_result<Function, Sample>>;

struct bundle_by_fn {
  /// Bundles the samples with equal keys, such as the turns of a conversation or the clips of a
  /// video. Bundles are in the order of their first samples, and the samples of a bundle ascend.
  ///
  /// `key` is called once for each sample, in order. Complexity: n log n comparisons of keys.
  /// Memory: a key and 16 bytes for each sample, including the result. Determinism: portable.
  /// Errors: `std::length_error` if there are more than 2^32 - 1 samples.
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
    // `begin_of` has this value for samples that are not the first of their bundle. For a first
    // sample it is the index in `by_key` at which its bundle begins.
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

/// Bundles the samples that share a key; see `bundle_by_fn`.
inline constexpr bundle_by_fn bundle_by{};

struct bundle_loads_fn {
  /// Returns the demand of each bundle, which is the sum of the demands of its samples. A packer or
  /// balancer accepts the result as samples, with `std::identity` as their demand, so that the
  /// samples of a bundle stay together. `unbundle` turns the result of the packer into groups of
  /// samples.
  ///
  /// `bundles` contains every sample in exactly one bundle. A sample that is packed by itself is a
  /// bundle of one sample. `demand` returns resources or one weight. Complexity: linear. Memory:
  /// the result and a byte for each sample. Determinism: portable. Errors: `std::invalid_argument`
  /// if a sample is in two bundles or in none, if an index is not in `samples`, and if a demand is
  /// negative or not finite; `std::overflow_error` if a load exceeds its type.
  template <sample_range Samples, class Demand>
    requires demand_function<Demand, sample_reference<Samples>>
  [[nodiscard]] auto operator()(groups_argument bundles, Samples const& samples,
                                Demand const& demand) const {
    auto loads = detail::add_up_groups(name, "demand", bundles, samples, demand);
    detail::permutation_check named(name, "the list of bundles", "samples",
                                    std::ranges::size(samples));
    named.take(bundles.items());
    named.finish();
    return loads;
  }

 private:
  static constexpr std::string_view name = "bundle_loads";
};

/// Returns the demand of each bundle of samples; see `bundle_loads_fn`.
inline constexpr bundle_loads_fn bundle_loads{};

struct unbundle_fn {
  /// Converts groups of bundles to groups of samples. The samples of each bundle replace the
  /// bundle, and the order of the bundles and of their samples is kept.
  ///
  /// Complexity: linear in the samples and groups. Allocates the result. Determinism: portable.
  /// Errors: `std::invalid_argument` if a group names a bundle that does not exist.
  [[nodiscard]] grouping operator()(groups_argument groups, groups_argument bundles) const {
    grouping result;
    result.reserve(groups.size(), bundles.item_count());
    for (std::size_t g = 0; g != groups.size(); ++g) {
      for (std::uint32_t const bundle : groups[g]) append(result, g, bundle, bundles);
      result.close();
    }
    return result;
  }

  /// Converts a packing of bundles to a packing of samples. The samples of an oversized bundle are
  /// oversized. The report still counts bundles.
  [[nodiscard]] packing operator()(packing const& packed, groups_argument bundles) const {
    packing result{(*this)(packed.groups, bundles), {}, packed.report};
    grouping oversized;
    for (std::uint32_t const bundle : packed.oversized) {
      append(oversized, packed.groups.size(), bundle, bundles);
    }
    result.oversized.assign(oversized.open_group().begin(), oversized.open_group().end());
    std::sort(result.oversized.begin(), result.oversized.end());
    return result;
  }

 private:
  static constexpr std::string_view name = "unbundle";

  static void append(grouping& output, std::size_t group, std::uint32_t bundle,
                     grouping_view bundles) {
    if (bundle >= bundles.size()) {
      detail::throw_invalid(name, "group ", group, " has bundle ", bundle, ", but there are ",
                            bundles.size());
    }
    for (std::uint32_t const sample : bundles[bundle]) output.push(sample);
  }
};

/// Converts groups of bundles to groups of samples; see `unbundle_fn`.
inline constexpr unbundle_fn unbundle{};

}  // namespace omnibal::inline v0
