// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Histograms of samples: how often each demand occurs.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/measure.hpp>
#include <omnibal/detail/run_bodies.hpp>
#include <omnibal/executor.hpp>
#include <omnibal/pack/demand_count.hpp>
#include <omnibal/pack/sample_histogram/demand_counter.hpp>
#include <omnibal/resources.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0 {

struct count_samples_fn;

/// A histogram of samples: the different demands in ascending order, resource by resource, and how
/// many samples have each demand. Equal samples have equal histograms, in whatever order they were
/// counted and merged. The number of samples is at most 2^63 - 1. Memory: 8R + 8 bytes for each
/// different demand.
template <std::size_t R = 1>
class sample_histogram {
 public:
  using entry = demand_count<R>;

  sample_histogram() = default;

  /// Sorts entries, adds up the counts of equal demands and drops counts of zero. Complexity: n log
  /// n. Errors: `std::invalid_argument` if an amount is negative, `std::overflow_error` if the
  /// counts add up to more than 2^63 - 1.
  explicit sample_histogram(std::vector<entry> entries) : entries_(std::move(entries)) {
    for (std::size_t i = 0; i != entries_.size(); ++i) {
      detail::check_demand(name, i, entries_[i].demand, "entry");
    }
    detail::sort_and_add(entries_);
    count_samples();
  }

  /// Returns the histogram of lengths: `counts[v]` samples have the length v. Complexity: linear.
  /// Errors: as the constructor.
  [[nodiscard]] static sample_histogram of_lengths(std::span<std::uint64_t const> counts) requires(
      R == 1) {
    sample_histogram result;
    for (std::size_t v = 0; v != counts.size(); ++v) {
      if (counts[v] != 0) result.entries_.push_back({static_cast<std::int64_t>(v), counts[v]});
    }
    result.count_samples();
    return result;
  }

  /// Adds the samples of another histogram, such as the histogram of another shard. The result does
  /// not depend on the order in which histograms are merged. Complexity: linear in the entries of
  /// both. Memory: the entries of both. Errors: `std::overflow_error` if there are more than 2^63 -
  /// 1 samples; then this histogram remains unchanged.
  void merge(sample_histogram const& other) {
    sample_histogram merged;
    merged.entries_ = detail::merged_entries<R>(entries_, other.entries_);
    merged.count_samples();
    *this = std::move(merged);
  }

  /// Returns the different demands, ascending, each with a positive count.
  [[nodiscard]] std::span<entry const> entries() const { return entries_; }

  /// Returns the number of samples.
  [[nodiscard]] std::uint64_t sample_count() const { return sample_count_; }

  /// Returns the index of the entry of a demand; the number of entries if no sample has the demand.
  /// Complexity: logarithmic.
  [[nodiscard]] std::size_t find(resources<R> const& demand) const {
    return detail::find_entry<R>(entries_, demand);
  }

  [[nodiscard]] friend bool operator==(sample_histogram const&, sample_histogram const&) = default;

 private:
  friend struct count_samples_fn;

  static constexpr std::string_view name = "sample_histogram";

  void count_samples() {
    std::int64_t sum = 0;
    for (entry const& one : entries_) {
      // A count above the largest integer is negative.
      auto const count = static_cast<std::int64_t>(one.count);
      if (count < 0) detail::throw_overflow(name, "the number of samples");
      detail::checked_add(name, "the number of samples", sum, count);
    }
    sample_count_ = static_cast<std::uint64_t>(sum);
  }

  std::vector<entry> entries_;
  std::uint64_t sample_count_ = 0;
};

struct count_samples_fn {
  /// Returns the histogram of samples, such as the samples of a shard: `count_samples(lengths,
  /// std::identity{})`. `demand` maps a sample to resources or to one weight, all of them integers.
  /// Samples that exceed a capacity are counted too.
  ///
  /// Complexity: linear for one resource with amounts below 2^18. Otherwise each sample also costs
  /// a share of a sort of 2^16 samples, and each 2^16 samples one pass over the different demands.
  /// Memory: the histogram twice, and at most 16 MiB. Determinism: portable. Errors:
  /// `std::invalid_argument` if a demand is negative, `std::length_error` if there are more than
  /// 2^32 - 1 samples; count a larger shard in parts and merge them.
  ///
  /// An executor counts up to 64 parts of at least 2^16 samples on its threads, so that several
  /// threads may call `demand` at once, and merges the parts in pairs. Memory: then the histograms
  /// of all parts twice, and up to 16 MiB on each thread.
  template <class Samples, class Demand, executor Executor = serial_executor>
    requires sample_range<Samples> && demand_function<Demand, sample_reference<Samples>> &&
        std::integral<detail::measured_weight<Samples, Demand>>
  [[nodiscard]] auto operator()(Samples const& samples, Demand const& demand,
                                Executor const& run = {}) const {
    using amounts_type = detail::measured_amounts<Samples, Demand>;
    constexpr std::size_t kinds = amounts_type::size();
    detail::check_index_count(name, "samples", std::ranges::size(samples));
    std::size_t const count = std::ranges::size(samples);
    std::size_t const parts = detail::part_count(count, min_part, max_parts<Executor>);
    std::vector<std::vector<demand_count<kinds>>> counted(parts);
    detail::run_bodies(name, run, parts, [&](std::size_t k) {
      detail::demand_counter<kinds> counter;
      detail::for_each_demand<amounts_type>(name, samples, demand, count * k / parts,
                                            count * (k + 1) / parts,
                                            [&](std::uint32_t index, amounts_type const& amounts) {
                                              detail::check_demand(name, index, amounts);
                                              counter.add(amounts);
                                            });
      counted[k] = std::move(counter).entries();
    });
    for (std::size_t left = parts; left != 1; left = (left + 1) / 2) {
      std::size_t const last = (left + 1) / 2;
      detail::run_bodies(name, run, left / 2, [&](std::size_t k) {
        counted[k] = detail::merged_entries<kinds>(counted[k], counted[last + k]);
        counted[last + k] = {};
      });
    }
    sample_histogram<kinds> result;
    result.entries_ = std::move(counted.front());
    result.count_samples();
    return result;
  }

 private:
  static constexpr std::string_view name = "count_samples";
  /// The least number of samples of a part, and the largest number of parts.
  static constexpr std::size_t min_part = std::size_t{1} << 16;
  template <class Executor>
  static constexpr std::size_t max_parts = std::same_as<Executor, serial_executor> ? 1 : 64;
};

/// Counts the samples of a shard by demand; see `count_samples_fn`.
inline constexpr count_samples_fn count_samples{};

}  // namespace omnibal::inline v0
