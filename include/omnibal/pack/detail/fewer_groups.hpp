#pragma once

/// \file
/// Fewer groups by dissolving some and filling the others from them.

#include <omnibal/detail/radix_sort.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/pack/best_fit_options.hpp>
#include <omnibal/pack/detail/exchange_pool.hpp>
#include <omnibal/pack/detail/measure.hpp>
#include <omnibal/pack/detail/pack_cells.hpp>
#include <omnibal/pack/detail/pack_line.hpp>
#include <omnibal/pack/detail/scarce_size.hpp>
#include <omnibal/pack/packing.hpp>
#include <omnibal/pack/score.hpp>
#include <omnibal/rng/below.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// A packing with few groups of samples that all fit.
template <class Layout>
[[nodiscard]] grouping pack_afresh(measured<Layout>&& input) {
  using amounts_type = typename Layout::amounts_type;
  least_slack const score(input.capacity);
  if constexpr (amounts_type::size() == 1 && std::integral<typename amounts_type::value_type>) {
    packing_report unused;
    auto sampled = pack_sampled(input, size_measure::sum_of_shares, score, unused);
    grouping groups = pack_line(std::move(input)).groups;
    return sampled && sampled->size() < groups.size() ? std::move(*sampled) : std::move(groups);
  } else {
    return pack_attempts(std::move(input), {}, score, random_groups::allowed).groups;
  }
}

/// Makes packings with fewer groups, pass by pass.
///
/// A pass dissolves a share of the groups into a pool, those with much room and some by chance,
/// fills the other groups from the pool, the fullest first, and packs the pool afresh. The demands
/// in the pool shrink by what the others gain, so that the pool takes fewer groups. What a packing
/// of the pool wastes is the larger the larger the pool, and what the others gain is too: the share
/// begins with a half and falls whenever a pass gains too little.
template <class Layout>
class group_reducer {
 public:
  /// `input` must outlive this object.
  group_reducer(measured<Layout> const& input, std::uint64_t seed)
      : input_(input), size_(input), pool_(input, size_), words_(seed) {}

  /// One pass over `groups`, after which they are fewer or as many. Precondition: two at least.
  void run(grouping& groups) {
    std::size_t const count = groups.size();
    grouping after = dissolve_and_refill(groups, pool_groups(count));
    std::size_t const gain = count - std::min(count, after.size());
    // Groups as many as before are welcome: the next pass finds other ways from there.
    if (after.size() <= count) groups = std::move(after);
    if (gain * 200 < pool_groups(count)) share_ = share_ / 10 * 7;
    if (pool_groups(count) == least_pool_groups) {
      share_ = largest_share;
      is_exhausted_ = !has_gained_;
      has_gained_ = false;
    }
    has_gained_ = has_gained_ || gain != 0;
    ++pass_;
  }

  /// True after passes with all shares, none of which gained anything.
  [[nodiscard]] bool is_exhausted() const { return is_exhausted_; }

 private:
  using amounts_type = typename Layout::amounts_type;
  static constexpr std::uint64_t largest_share = std::uint64_t{1} << 31;
  static constexpr std::size_t least_pool_groups = 2;

  /// The number of groups that a pass dissolves.
  [[nodiscard]] std::size_t pool_groups(std::size_t count) const {
    return std::max(least_pool_groups, static_cast<std::size_t>(count * share_ >> 32));
  }

  [[nodiscard]] grouping dissolve_and_refill(grouping const& groups, std::size_t dissolved) {
    std::vector<std::uint32_t> const order = fullest_first(groups);
    std::size_t const kept = groups.size() - dissolved;
    pool_.clear();
    std::vector<std::uint32_t> of_no_size;
    for (std::size_t i = kept; i != order.size(); ++i) {
      for (std::uint32_t const sample : groups[order[i]]) {
        // Samples that take nothing fill nothing, and fit any group.
        if (kept != 0 && input_.amounts(sample) == amounts_type{}) {
          of_no_size.push_back(sample);
        } else {
          pool_.add(sample);
        }
      }
    }
    grouping result;
    result.reserve(groups.size() + 1, input_.size());
    for (std::uint32_t const sample : of_no_size) result.push(sample);
    for (std::size_t i = 0; i != kept; ++i) {
      auto const before = groups[order[i]];
      group_.assign(before.begin(), before.end());
      pool_.fill(group_, words_);
      for (std::uint32_t const sample : group_) result.push(sample);
      result.close();
    }
    append_pool(result);
    return result;
  }

  /// The groups by descending size of their load, with some noise.
  [[nodiscard]] std::vector<std::uint32_t> fullest_first(grouping const& groups) {
    std::uint64_t const whole = size_(input_.capacity);
    std::uint64_t const noise = whole / (pass_ % 2 == 0 ? 50 : 10) + 1;
    std::vector<std::uint64_t> keys(groups.size());
    for (std::size_t g = 0; g != keys.size(); ++g) {
      keys[g] = size_(input_.load(groups[g])) + noise - rng::below(words_, noise);
    }
    return order_descending(keys.size(), [&keys](std::size_t g) { return keys[g]; });
  }

  /// Packs the samples of the pool and appends their groups.
  void append_pool(grouping& result) {
    measured<Layout> rest{input_.layout, input_.capacity, input_.units, {}, {}};
    std::vector<std::uint32_t> samples;
    for (std::uint32_t k = 0; k != input_.size(); ++k) {
      if (!pool_.contains(k)) continue;
      samples.push_back(k);
      rest.demands.push_back(input_.demands[k]);
    }
    grouping const packed = pack_afresh(std::move(rest));
    for (std::size_t g = 0; g != packed.size(); ++g) {
      for (std::uint32_t const number : packed[g]) result.push(samples[number]);
      result.close();
    }
  }

  measured<Layout> const& input_;
  scarce_size<amounts_type::size(), typename amounts_type::value_type> size_;
  exchange_pool<Layout> pool_;
  rng::engine words_;
  std::vector<std::uint32_t> group_;
  std::uint64_t share_ = largest_share;
  std::uint64_t pass_ = 0;
  bool has_gained_ = false;
  bool is_exhausted_ = false;
};

}  // namespace omnibal::inline v0::detail
