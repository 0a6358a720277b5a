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
#include <omnibal/sample/detail/share_tree.hpp>
#include <omnibal/sample/epoch.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <ranges>
#include <string_view>
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
};

struct mixture_options {
  std::uint64_t seed = 0;
  /// The behavior when a source has no sample left. The mixture is endless by default. A loop that
  /// runs until an `epoch_sampler` is done requires `source_end::stop`. Otherwise, pass
  /// `epoch_sampler` a number of draws instead of `size()`.
  source_end end = source_end::restart;
  /// The number of consecutive draws whose order is shuffled. With 1 the sources alternate as
  /// evenly as possible; then a rank that takes every R-th draw may receive samples of only one
  /// source. The number of draws in a step is a good window.
  std::uint64_t window = 1;
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
/// their sum, and a positive weight to at least one such multiple. `options.window` shuffles the
/// draws within each window, so the bounds hold only at the ends of windows. The quotas hold if the
/// window is a multiple of the period.
///
/// A source returns its samples in the order of an `epoch_sampler` for its size with the seed
/// `epoch_seed(options.seed, index of the source)`, epoch after epoch. The mixture is endless by
/// default and `size()` is 2^63 - 1. With `source_end::stop` the mixture ends before a source would
/// start its second epoch. To share the draws among ranks, pass the positions from an
/// `epoch_sampler` in given order to the mixture. If the mixture ends, construct the sampler with
/// `size()` samples. Otherwise, construct it with the number of draws to train on, because an epoch
/// of 2^63 - 1 draws is never done.
///
/// Complexity: construction is n log n for n sources. A draw requires one division for each node on
/// the path to its source in a Huffman tree of the weights. Memory: about 80 bytes for each source.
/// Draws allocate nothing. Determinism: portable. Sources: Tijdeman, "The chairman assignment
/// problem", 1980, shows that no sequence stays below 1 - 1/(2n - 2) for all weights; Katona,
/// Nemetz, "Huffman codes and self-information", 1976, bounds the weights on a path through the
/// tree.
class mixture {
 public:
  /// Constructs a mixture of sources: `size(source)` is the number of samples of a source and
  /// `weight(source)` its weight. Errors: `std::invalid_argument` if there are no sources, if a
  /// size or weight is negative or not finite, if a source has a weight but no samples, if no
  /// weight is positive, and if the window is zero; `std::length_error` if there are more than 2^31
  /// sources.
  template <sample_range Sources, size_function<sample_reference<Sources>> Size,
            cost_function<sample_reference<Sources>> Weight>
  mixture(Sources const& sources, Size const& size, Weight const& weight,
          mixture_options const& options = {})
      : options_(options), tree_(detail::whole_shares(name, sources, weight)) {
    detail::check_positive(name, "options.window", options.window);
    sources_.reserve(std::ranges::size(sources));
    for (auto&& source : sources) {
      std::size_t const index = sources_.size();
      auto const samples = std::invoke(size, source);
      detail::check_weight(name, "size", index, samples);
      if (samples == 0 && tree_.share(index) != 0) {
        detail::throw_invalid(name, "source ", index, " has a weight but no samples");
      }
      sources_.push_back({static_cast<std::uint64_t>(samples), epoch_seed(options.seed, index)});
    }
    size_ = find_end();
  }

  /// Returns the draw at a position. Errors: `std::invalid_argument` if the position is at or
  /// beyond the end.
  [[nodiscard]] mixture_draw operator()(std::uint64_t position) const {
    if (position >= size_) {
      detail::throw_invalid(name, "position is ", position, ", must be below ", size_);
    }
    detail::source_draw const drawn = tree_.draw(before_shuffle(position));
    source_record const& source = sources_[drawn.source];
    std::uint64_t const epoch = drawn.ordinal / source.size;
    rng::permutation const order(source.size, epoch_seed(source.seed, epoch));
    return {drawn.source, epoch, order(drawn.ordinal % source.size)};
  }

  /// Returns the number of draws until the mixture ends. For an endless mixture, with
  /// `source_end::restart`, the default, the result is `max_samples`, which is 2^63 - 1.
  [[nodiscard]] std::uint64_t size() const { return size_; }

  /// Returns the sum of the weights as whole numbers. Each block of this number of draws contains
  /// each source exactly as often as its whole number.
  [[nodiscard]] std::uint64_t period() const { return tree_.period(); }

  /// Returns a digest of the sizes, weights and options, which is suitable as
  /// `epoch_sampler_options::contents`.
  [[nodiscard]] std::uint64_t digest() const {
    detail::data_digest result;
    result.add(options_.seed);
    result.add(options_.window);
    result.add(size_);
    for (std::size_t i = 0; i != sources_.size(); ++i) {
      result.add(sources_[i].size);
      result.add(tree_.share(i));
    }
    return result.value();
  }

 private:
  static constexpr std::string_view name = "mixture";

  struct source_record {
    std::uint64_t size;
    std::uint64_t seed;
  };

  /// Returns the first position at which a source without remaining samples would be drawn.
  [[nodiscard]] std::uint64_t find_end() const {
    if (options_.end == source_end::restart) return max_samples;
    std::uint64_t end = max_samples;
    std::uint64_t const max_periods = max_samples / tree_.period();
    for (std::size_t i = 0; i != sources_.size(); ++i) {
      std::uint64_t const size = sources_[i].size;
      if (tree_.share(i) == 0 || size / tree_.share(i) >= max_periods) continue;
      end = std::min(end, tree_.position_of({static_cast<std::uint32_t>(i), size}));
    }
    return end;
  }

  /// Returns the position, in the sequence before the shuffle, of the draw that the shuffle moves
  /// to `position`.
  [[nodiscard]] std::uint64_t before_shuffle(std::uint64_t position) const {
    if (options_.window == 1) return position;
    std::uint64_t const number = position / options_.window;
    std::uint64_t const first = number * options_.window;
    std::uint64_t const length = std::min(options_.window, size_ - first);
    rng::permutation const order(length, epoch_seed(~options_.seed, number));
    return first + order(position - first);
  }

  mixture_options options_;
  detail::share_tree tree_;
  std::vector<source_record> sources_;
  std::uint64_t size_ = 0;
};

}  // namespace omnibal::inline v0
