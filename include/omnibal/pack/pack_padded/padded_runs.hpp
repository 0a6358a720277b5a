// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The cuts of sorted samples into padded groups: the fewest, and of these the least padding.

#include <omnibal/config.hpp>
#include <omnibal/detail/measure.hpp>
#include <omnibal/detail/radix_sort.hpp>
#include <omnibal/pack/detail/padded_count.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace omnibal::inline v0::detail {

/// Samples in descending order of size, and their groups, which are runs in this order. The count
/// of a group is at most the smallest count that one of its samples permits. Some best packing
/// consists of such runs: if samples of two groups change places so that the first group has the
/// longer ones, no count and no longest sample of a group grows.
template <class Layout>
class padded_runs {
 public:
  /// Sorts the samples. Complexity: n log n. Memory: 40 bytes for each sample.
  explicit padded_runs(measured<Layout> const& input) : count_(input.size()) {
    sizes_.reserve(count_);
    max_counts_.reserve(count_);
    if constexpr (kinds == 1 && std::integral<amount_type>) {
      auto const amount = input.amounts_of(0);
      order_ = order_descending(count_, amount);
      for (std::uint32_t const k : order_) {
        sizes_.push_back(amount(k));
        max_counts_.push_back(padded_count(amount(k), input.capacity[0], count_));
      }
    } else {
      sort_by_count(input);
    }
  }

  /// Returns the samples in descending order of size.
  [[nodiscard]] std::vector<std::uint32_t>& order() { return order_; }

  /// Returns the position of the first sample of each group, and last the number of samples.
  [[nodiscard]] std::vector<std::uint32_t> cuts() {
    costs_.assign(count_ + 1, 0);
    last_cuts_.assign(count_ + 1, 0);
    // Samples up to the end of a block need one group more than samples up to its begin.
    std::size_t groups = 0;
    std::size_t previous = 0;
    for (std::size_t begin = 0; begin != count_; ++groups) {
      std::size_t const end = end_of_group(begin);
      std::size_t const first_cut = groups == 0 ? 0 : previous + 1;
      choose_cuts({begin + 1, end + 1}, {first_cut, begin + 1});
      previous = begin;
      begin = end;
    }
    std::vector<std::uint32_t> cuts(groups + 1, static_cast<std::uint32_t>(count_));
    for (std::size_t g = groups; g-- != 0;) cuts[g] = last_cuts_[cuts[g + 1]];
    return cuts;
  }

 private:
  static constexpr std::size_t kinds = Layout::amounts_type::size();
  using amount_type = typename Layout::amounts_type::value_type;
  /// The size of a sample: its amount, or its largest share of the capacity if there are several
  /// resources. Shares are multiples of 2^-53, so that a compiler cannot round their sums and
  /// products in different ways.
  using size_type = std::conditional_t<kinds == 1, amount_type, std::int64_t>;
  /// Count times size, summed over groups.
  using cost_type = std::conditional_t<std::integral<size_type>, int128, double>;

  /// Positions in the order, from `begin` to before `end`.
  struct range {
    std::size_t begin;
    std::size_t end;
  };

  void sort_by_count(measured<Layout> const& input) {
    struct counted_sample {
      std::size_t max_count;
      size_type size;
      std::uint32_t number;
    };
    std::vector<counted_sample> samples;
    samples.reserve(count_);
    for (std::uint32_t k = 0; k != count_; ++k) {
      auto const amounts = input.amounts(k);
      std::size_t max_count = count_;
      for (std::size_t r = 0; r != kinds; ++r) {
        max_count = std::min(max_count, padded_count(amounts[r], input.capacity[r], count_));
      }
      samples.push_back({max_count, size_of(amounts, input.capacity), k});
    }
    std::sort(samples.begin(), samples.end(),
              [](counted_sample const& left, counted_sample const& right) {
                // Shares may be rounded, so that counts come first.
                if (left.max_count != right.max_count) return left.max_count < right.max_count;
                if (left.size != right.size) return left.size > right.size;
                return left.number < right.number;
              });
    order_.reserve(count_);
    for (counted_sample const& sample : samples) {
      order_.push_back(sample.number);
      sizes_.push_back(sample.size);
      max_counts_.push_back(sample.max_count);
    }
  }

  template <class Amounts>
  [[nodiscard]] static size_type size_of(Amounts const& amounts, Amounts const& capacity) {
    if constexpr (kinds == 1) {
      return amounts[0];
    } else {
      double share = 0;
      for (std::size_t r = 0; r != kinds; ++r) {
        share = std::max(share, static_cast<double>(amounts[r]) / static_cast<double>(capacity[r]));
      }
      return static_cast<std::int64_t>(std::ldexp(share, 53));
    }
  }

  /// Returns the end of the longest group that begins at a position.
  [[nodiscard]] std::size_t end_of_group(std::size_t begin) const {
    return begin + std::min(max_counts_[begin], count_ - begin);
  }

  /// Returns the padded amount of the group between two positions.
  [[nodiscard]] cost_type cost_of(std::size_t begin, std::size_t end) const {
    return static_cast<cost_type>(end - begin) * static_cast<cost_type>(sizes_[begin]);
  }

  /// Chooses the begin of the last group for each end in a range, from a range of begins. The best
  /// begins ascend with the ends, because sizes descend: divide and conquer.
  void choose_cuts(range ends, range begins) {
    if (ends.begin == ends.end) return;
    std::size_t const end = ends.begin + (ends.end - ends.begin) / 2;
    auto const in_reach = [&](std::size_t begin) { return end_of_group(begin) >= end; };
    std::size_t begin = first_begin(begins, in_reach);
    std::size_t best = begin;
    cost_type least = costs_[begin] + cost_of(begin, end);
    for (++begin; begin != begins.end; ++begin) {
      cost_type const cost = costs_[begin] + cost_of(begin, end);
      if (cost >= least) continue;
      least = cost;
      best = begin;
    }
    costs_[end] = least;
    last_cuts_[end] = static_cast<std::uint32_t>(best);
    choose_cuts({ends.begin, end}, {begins.begin, best + 1});
    choose_cuts({end + 1, ends.end}, {best, begins.end});
  }

  /// Returns the first begin in a range from which a group reaches the end. Precondition: the group
  /// from the last begin reaches it.
  template <class InReach>
  [[nodiscard]] static std::size_t first_begin(range begins, InReach const& in_reach) {
    std::size_t out_of_reach = begins.begin;
    if (in_reach(out_of_reach)) return out_of_reach;
    std::size_t found = begins.end - 1;
    while (found - out_of_reach > 1) {
      std::size_t const middle = out_of_reach + (found - out_of_reach) / 2;
      (in_reach(middle) ? found : out_of_reach) = middle;
    }
    return found;
  }

  std::size_t count_;
  std::vector<std::uint32_t> order_;
  /// The size and the largest count of the sample at each position in the order.
  std::vector<size_type> sizes_;
  std::vector<std::size_t> max_counts_;
  /// The least cost of the samples before a position in the fewest groups, and the begin of the
  /// last of these groups.
  std::vector<cost_type> costs_;
  std::vector<std::uint32_t> last_cuts_;
};

}  // namespace omnibal::inline v0::detail
