// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// One stream of samples from several sources.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/data_digest.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/rng/permutation.hpp>
#include <omnibal/sample/epoch.hpp>
#include <omnibal/sample/mixture/mixture_phase.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <ranges>
#include <span>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// The largest number of sources of a mixture.
inline constexpr std::size_t max_sources = std::size_t{1} << 31;

/// Returns whole numbers in proportion to `weights`, with a sum below 2^32. If the weights are
/// integers with a sum below 2^32, the result is the weights themselves. Otherwise each number is
/// the share of its weight in the sum, rounded to a multiple of 2^-31 and at least one such unit.
template <sample_range Sources, class Weight>
[[nodiscard]] std::vector<std::uint64_t> whole_shares(std::string_view function,
                                                      Sources const& sources,
                                                      Weight const& weight) {
  if (std::ranges::size(sources) == 0) throw_invalid(function, "there are no sources");
  if (std::ranges::size(sources) > max_sources) {
    throw_length(function, "sources", std::ranges::size(sources));
  }
  using working = measured_weight<Sources, Weight>;
  auto const weights = given_costs(function, "weight", sources, weight);
  // The sum is a floating-point number because an integer could overflow.
  double sum = 0;
  for (working const value : weights) {
    checked_add(function, "the sum of the weights", sum, static_cast<double>(value));
  }
  if (sum == 0) throw_invalid(function, "all weights are zero");
  bool const is_whole = std::integral<working> && sum <= static_cast<double>(max_index_count);
  std::vector<std::uint64_t> shares;
  shares.reserve(weights.size());
  for (working const value : weights) {
    double const share = std::floor(static_cast<double>(value) / sum * 0x1p31 + 0.5);
    shares.push_back(is_whole || value == 0 ? static_cast<std::uint64_t>(value)
                                            : static_cast<std::uint64_t>(std::max(share, 1.0)));
  }
  return shares;
}

}  // namespace omnibal::inline v0::detail

namespace omnibal::inline v0 {

/// The behavior of a mixture when a source has no sample left.
enum class source_end {
  /// The source starts its next epoch, in another order. The mixture has no end: `size()` is
  /// `max_samples`, 2^63 - 1.
  restart,
  /// The mixture ends before the first draw for which its source has no sample left.
  stop,
  /// Sources restart, and the mixture ends after the draw with which the last source has given all
  /// its samples once. Smaller sources then repeat samples.
  stop_after_all,
  /// The source drops out, and the others continue in proportion to their weights. The mixture ends
  /// when no source has samples left: each sample of a source with a weight is drawn once.
  drop_out,
};

struct mixture_options {
  std::uint64_t seed = 0;
  /// The behavior when a source has no sample left. The mixture is endless by default. A loop that
  /// runs until an `epoch_sampler` is done requires another value. Otherwise, pass `epoch_sampler`
  /// a number of draws instead of `size()`.
  source_end end = source_end::restart;
  /// The number of consecutive draws whose order is shuffled. With 1 the sources alternate as
  /// evenly as possible; then a rank that takes every R-th draw may receive samples of only one
  /// source. The number of draws in a step is a good window.
  std::uint64_t window = 1;
  /// The number of draws that each source gave before position 0, as from `mixture::drawn` or from
  /// another loader with the same order; empty for no draws. The sources continue with their next
  /// samples.
  std::vector<std::uint64_t> drawn = {};
};

/// A sample that a mixture draws: the index of its source, the epoch of the source, and the index
/// of the sample inside the source.
struct mixture_draw {
  std::uint32_t source;
  std::uint64_t epoch;
  std::uint64_t sample;

  [[nodiscard]] friend bool operator==(mixture_draw const&, mixture_draw const&) = default;
};

/// A functor from a source to the number of its samples, an integer.
template <class Function, class Source>
concept size_function =
    cost_function<Function, Source> && std::integral<demand_result<Function, Source>>;

/// A stream of draws from several sources, each in proportion to its weight. A draw is a function
/// of its position: it does not require the draws before it. A checkpoint requires only the
/// position.
///
/// In every prefix of the stream, the number of draws of a source differs from its share of the
/// length by at most 1.68. With two sources the difference is at most 1/2. Integer weights whose
/// sum is below 2^32 are quotas: each block of `period()` draws that starts at a multiple of the
/// period has exactly the quota of each source. Other weights are rounded to multiples of 2^-31 of
/// their sum, and a positive weight to at least one such multiple. The option `options.window`
/// shuffles the draws within each window, so the bounds hold only at the ends of windows. The
/// quotas hold if the window is a multiple of the period.
///
/// A source returns its samples in the order of an `epoch_sampler` for its size with the seed
/// `epoch_seed(options.seed, index of the source)`, epoch after epoch. The mixture is endless by
/// default and `size()` is 2^63 - 1; `source_end` has other ends. `reweighted` changes the weights
/// from a position on, without lost or repeated samples. To share the draws among ranks, pass the
/// positions from an `epoch_sampler` in given order to the mixture. If the mixture ends, construct
/// the sampler with `size()` samples. Otherwise, construct it with the number of draws to train on,
/// because an epoch of 2^63 - 1 draws is never done.
///
/// Complexity: construction is n log n for n sources. A draw requires one division for each node on
/// the path to its source in a Huffman tree of the weights. Memory: about 80 bytes for each source.
/// With `source_end::drop_out`, these costs arise again each time that a source drops out, as with
/// each call of `reweighted`. Draws allocate nothing. Determinism: portable. Sources: Tijdeman,
/// "The chairman assignment problem", 1980, shows that no sequence stays below 1 - 1/(2n - 2) for
/// all weights. Katona, Nemetz, "Huffman codes and self-information", 1976, bounds the weights on a
/// path through the tree.
class mixture {
 public:
  /// Constructs a mixture of sources: `size(source)` is the number of samples of a source and
  /// `weight(source)` its weight. Errors: `std::invalid_argument` if there are no sources, if a
  /// size or weight is negative or not finite, or if a source has a weight but no samples. It is
  /// also thrown if no weight is positive, if the window is zero, and if `options.drawn` is neither
  /// empty nor one number below 2^63 for each source. Further errors: `std::length_error` if there
  /// are more than 2^31 sources, or if sources drop out so often that the product of these times
  /// and the sources exceeds 2^22.
  template <sample_range Sources, size_function<sample_reference<Sources>> Size,
            cost_function<sample_reference<Sources>> Weight>
  mixture(Sources const& sources, Size const& size, Weight const& weight,
          mixture_options const& options = {})
      : options_(options) {
    auto shares = detail::whole_shares(name, sources, weight);
    detail::check_positive(name, "options.window", options.window);
    sources_.reserve(std::ranges::size(sources));
    for (auto&& source : sources) {
      std::size_t const index = sources_.size();
      auto const samples = std::invoke(size, source);
      detail::check_weight(name, "size", index, samples);
      sources_.push_back({static_cast<std::uint64_t>(samples), epoch_seed(options.seed, index)});
    }
    check_shares(shares);
    detail::drawn_samples drawn;
    if (!options_.drawn.empty()) {
      check_count("options.drawn", options_.drawn.size());
      for (std::size_t i = 0; i != sources_.size(); ++i) {
        if (options_.drawn[i] <= max_samples) continue;
        detail::throw_invalid(name, "options.drawn[", i, "] is ", options_.drawn[i],
                              ", must be at most ", max_samples);
      }
      drawn.next = options_.drawn;
    }
    add_phases(0, 0, std::move(shares), std::move(drawn));
  }

  /// Returns a mixture with the same draws before `position`, and other weights from that position
  /// on. The sources continue with the samples that this mixture has not drawn, each of them once;
  /// so no sample is lost or repeated, also if the position is inside a window. The number of
  /// sources, their sizes and the options remain the same, and the weights may change again later.
  /// `period()` is the period of the new weights; their blocks and windows start at `position`.
  ///
  /// Complexity: n log n for n sources, and the window if the position is inside a window. Errors:
  /// `std::invalid_argument` if the position is beyond the end or if the number of sources differs,
  /// and the errors of the constructor.
  template <sample_range Sources, cost_function<sample_reference<Sources>> Weight>
  [[nodiscard]] mixture reweighted(std::uint64_t position, Sources const& sources,
                                   Weight const& weight) const {
    if (position > size_) {
      detail::throw_invalid(name, "position is ", position, ", must be at most ", size_);
    }
    auto shares = detail::whole_shares(name, sources, weight);
    check_count("sources", shares.size());
    check_shares(shares);
    mixture result = *this;
    while (result.phases_.size() > 1 && result.phases_.back().begin() >= position) {
      result.phases_.pop_back();
    }
    detail::mixture_phase const& last = result.phases_.back();
    std::uint64_t const length = position - last.begin();
    auto drawn = last.drawn(length, shuffle());
    std::uint64_t const windows = last.windows_before(length, options_.window);
    if (position == last.begin()) result.phases_.pop_back();
    result.add_phases(position, windows, std::move(shares), std::move(drawn));
    return result;
  }

  /// Returns the draw at a position. Errors: `std::invalid_argument` if the position is at or
  /// beyond the end.
  [[nodiscard]] mixture_draw operator()(std::uint64_t position) const {
    if (position >= size_) {
      detail::throw_invalid(name, "position is ", position, ", must be below ", size_);
    }
    detail::mixture_phase const& phase = phase_of(position);
    detail::source_draw const drawn = phase.draw(position - phase.begin(), shuffle());
    source_record const& source = sources_[drawn.source];
    std::uint64_t const epoch = drawn.ordinal / source.size;
    rng::permutation const order(source.size, epoch_seed(source.seed, epoch));
    return {drawn.source, epoch, order(drawn.ordinal % source.size)};
  }

  /// Returns the number of draws that each source gave before a position, with `options.drawn`. For
  /// a position that is a multiple of the window, and for any position if the window is 1, these
  /// are the first samples of each source, so that `mixture_options::drawn` continues from there.
  /// Complexity: linear in the sources and in the window. Errors: `std::invalid_argument` if the
  /// position is beyond the end.
  [[nodiscard]] std::vector<std::uint64_t> drawn(std::uint64_t position) const {
    if (position > size_) {
      detail::throw_invalid(name, "position is ", position, ", must be at most ", size_);
    }
    detail::mixture_phase const& phase = phase_of(position);
    auto counts = phase.drawn(position - phase.begin(), shuffle());
    for (detail::source_draw const& skipped : counts.skipped) --counts.next[skipped.source];
    return counts.next;
  }

  /// Returns the position before which each source gave these draws: the inverse of `drawn`.
  /// Errors: `std::invalid_argument` if there is no such position; the message names a source. Then
  /// construct a mixture with `mixture_options::drawn`.
  [[nodiscard]] std::uint64_t seek(std::span<std::uint64_t const> draws) const {
    check_count("draws", draws.size());
    std::uint64_t position = 0;
    for (std::size_t i = 0; i != draws.size(); ++i) {
      std::uint64_t const first = options_.drawn.empty() ? 0 : options_.drawn[i];
      if (draws[i] < first || draws[i] - first > size_ - position) {
        detail::throw_invalid(name, "source ", i, " has never ", draws[i], " draws");
      }
      position += draws[i] - first;
    }
    auto const found = drawn(position);
    for (std::size_t i = 0; i != draws.size(); ++i) {
      if (found[i] == draws[i]) continue;
      detail::throw_invalid(name, "no position has these draws: at position ", position,
                            ", source ", i, " has ", found[i], ", not ", draws[i]);
    }
    return position;
  }

  /// Returns the number of draws until the mixture ends. For an endless mixture, with
  /// `source_end::restart`, the default, the result is `max_samples`, which is 2^63 - 1.
  [[nodiscard]] std::uint64_t size() const { return size_; }

  /// Returns the sum of the weights as whole numbers, of the first weights with `drop_out`. Each
  /// block of this number of draws contains each source exactly as often as its whole number.
  [[nodiscard]] std::uint64_t period() const { return period_; }

  /// Returns a digest of the sizes, weights and options, which is suitable as
  /// `epoch_sampler_options::contents`.
  [[nodiscard]] std::uint64_t digest() const {
    detail::data_digest result;
    result.add(options_.seed);
    result.add(options_.window);
    result.add(size_);
    for (std::size_t i = 0; i != sources_.size(); ++i) {
      result.add(sources_[i].size);
      result.add(phases_.front().share(i));
    }
    for (std::uint64_t const count : options_.drawn) result.add(count);
    for (std::size_t k = 1; k != phases_.size(); ++k) {
      result.add(phases_[k].begin());
      for (std::size_t i = 0; i != sources_.size(); ++i) result.add(phases_[k].share(i));
    }
    return result.value();
  }

 private:
  static constexpr std::string_view name = "mixture";
  /// The largest product of phases and sources.
  static constexpr std::size_t max_phase_sources = std::size_t{1} << 22;

  struct source_record {
    std::uint64_t size;
    std::uint64_t seed;
  };

  [[nodiscard]] detail::mixture_shuffle shuffle() const {
    return {~options_.seed, options_.window};
  }

  void check_count(std::string_view argument, std::size_t count) const {
    if (count == sources_.size()) return;
    detail::throw_invalid(name, argument, " has ", count, " elements, must have ", sources_.size(),
                          ", one for each source");
  }

  void check_shares(std::vector<std::uint64_t> const& shares) const {
    for (std::size_t i = 0; i != shares.size(); ++i) {
      if (sources_[i].size != 0 || shares[i] == 0) continue;
      detail::throw_invalid(name, "source ", i, " has a weight but no samples");
    }
  }

  /// Returns the last phase that begins at or before a position.
  [[nodiscard]] detail::mixture_phase const& phase_of(std::uint64_t position) const {
    auto const next = std::upper_bound(
        phases_.begin(), phases_.end(), position,
        [](std::uint64_t at, detail::mixture_phase const& of) { return at < of.begin(); });
    return *(next - 1);
  }

  /// Adds a phase that begins at a position, and further phases if sources drop out. Sets the size.
  void add_phases(std::uint64_t begin, std::uint64_t windows, std::vector<std::uint64_t> shares,
                  detail::drawn_samples drawn) {
    period_ = 0;
    for (std::uint64_t const share : shares) period_ += share;
    for (;;) {
      bool has_shares = options_.end != source_end::drop_out;
      for (std::size_t i = 0; !has_shares && i != shares.size(); ++i) {
        if (drawn.left(i, sources_[i].size) == 0) shares[i] = 0;
      }
      has_shares = has_shares || std::any_of(shares.begin(), shares.end(),
                                             [](std::uint64_t share) { return share != 0; });
      if (!has_shares && !phases_.empty()) {
        size_ = begin;
        return;
      }
      if (!has_shares) detail::throw_invalid(name, "no source with a weight has samples left");
      if (!phases_.empty() && (phases_.size() + 1) * sources_.size() > max_phase_sources) {
        throw std::length_error(detail::message(
            name, "sources drop out ", phases_.size(), " times, too often for ", sources_.size(),
            " sources; weights equal to the sizes make them end together"));
      }
      detail::mixture_phase& phase =
          phases_.emplace_back(begin, windows, std::move(shares), std::move(drawn));
      std::uint64_t const length = length_of(phase);
      phase.set_length(length);
      size_ = begin + length;
      if (options_.end != source_end::drop_out || size_ == max_samples) return;
      drawn = phase.drawn(length, shuffle());
      windows = phase.windows_before(length, options_.window);
      shares = phase.shares();
      begin = size_;
    }
  }

  /// Returns the number of draws of the last phase.
  [[nodiscard]] std::uint64_t length_of(detail::mixture_phase const& phase) const {
    std::uint64_t const most = max_samples - phase.begin();
    if (options_.end == source_end::restart) return most;
    bool const is_last = options_.end == source_end::stop_after_all;
    std::uint64_t length = is_last ? 0 : most;
    for (std::uint32_t i = 0; i != sources_.size(); ++i) {
      if (phase.share(i) == 0) continue;
      std::uint64_t const left = phase.start().left(i, sources_[i].size);
      if (is_last) {
        if (left != 0) length = std::max(length, phase.end_of(i, left - 1, most - 1) + 1);
      } else {
        length = std::min(length, phase.end_of(i, left, most));
      }
    }
    return length;
  }

  mixture_options options_;
  std::vector<source_record> sources_;
  std::vector<detail::mixture_phase> phases_;
  std::uint64_t period_ = 0;
  std::uint64_t size_ = 0;
};

}  // namespace omnibal::inline v0
