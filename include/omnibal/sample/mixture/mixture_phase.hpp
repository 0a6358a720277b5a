// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Consecutive draws of a mixture with the same weights.

#include <omnibal/rng/permutation.hpp>
#include <omnibal/sample/detail/share_tree.hpp>
#include <omnibal/sample/epoch.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// The draws that the sources of a mixture have given. A draw of a source has an ordinal, the
/// number of earlier draws in the order of the source.
struct drawn_samples {
  /// For each source, the ordinal after which no draw has been given; empty for zeros.
  std::vector<std::uint64_t> next;
  /// The earlier ordinals that have not been given, in ascending order of source and ordinal.
  std::vector<source_draw> skipped;

  [[nodiscard]] std::uint64_t next_of(std::size_t source) const {
    return next.empty() ? 0 : next[source];
  }

  /// Returns the skipped draws of a source, as a range of positions in `skipped`.
  [[nodiscard]] std::pair<std::size_t, std::size_t> skipped_of(std::uint32_t source) const {
    if (skipped.empty()) return {0, 0};
    auto const begin = std::lower_bound(
        skipped.begin(), skipped.end(), source,
        [](source_draw const& of, std::uint32_t wanted) { return of.source < wanted; });
    auto const end = std::upper_bound(
        begin, skipped.end(), source,
        [](std::uint32_t wanted, source_draw const& of) { return wanted < of.source; });
    return {static_cast<std::size_t>(begin - skipped.begin()),
            static_cast<std::size_t>(end - skipped.begin())};
  }

  /// Returns the number of samples of a source, of `size` samples, that its first epoch has left.
  [[nodiscard]] std::uint64_t left(std::size_t source, std::uint64_t size) const {
    std::uint64_t const first_left = next_of(source);
    std::uint64_t left = first_left < size ? size - first_left : 0;
    auto const [begin, end] = skipped_of(static_cast<std::uint32_t>(source));
    for (std::size_t k = begin; k != end; ++k) left += skipped[k].ordinal < size ? 1u : 0u;
    return left;
  }
};

/// The shuffle of the draws in each window.
struct mixture_shuffle {
  std::uint64_t seed;
  std::uint64_t window;
};

/// Consecutive draws of a mixture with the same weights. Positions count from the begin of the
/// phase.
class mixture_phase {
 public:
  /// `windows` is the number of windows of earlier phases. Precondition: a share is positive.
  mixture_phase(std::uint64_t begin, std::uint64_t windows, std::vector<std::uint64_t> shares,
                drawn_samples start)
      : begin_(begin), windows_(windows), tree_(std::move(shares)), start_(std::move(start)) {}

  /// Sets the number of draws, which limits the last window.
  void set_length(std::uint64_t length) { length_ = length; }

  [[nodiscard]] std::uint64_t begin() const { return begin_; }
  [[nodiscard]] std::uint64_t share(std::size_t source) const { return tree_.share(source); }
  [[nodiscard]] std::vector<std::uint64_t> shares() const { return tree_.shares(); }
  /// Returns the draws of earlier phases.
  [[nodiscard]] drawn_samples const& start() const { return start_; }

  /// Returns the source at a position, and the ordinal of the draw.
  [[nodiscard]] source_draw draw(std::uint64_t position, mixture_shuffle const& shuffle) const {
    if (shuffle.window != 1) {
      std::uint64_t const first = position / shuffle.window * shuffle.window;
      position = first + order_of(first, shuffle)(position - first);
    }
    return in_order_of_source(tree_.draw(position));
  }

  /// Returns the number of windows that begin before a position, with earlier phases.
  [[nodiscard]] std::uint64_t windows_before(std::uint64_t position, std::uint64_t window) const {
    return windows_ + position / window + (position % window != 0 ? 1 : 0);
  }

  /// Returns the position of a source's draw with a number that counts from the begin of the phase,
  /// before the shuffle, but at most `most`. Precondition: the share of the source is positive.
  [[nodiscard]] std::uint64_t end_of(std::uint32_t source, std::uint64_t number,
                                     std::uint64_t most) const {
    if (number / tree_.share(source) >= max_samples / tree_.period()) return most;
    return std::min(most, tree_.position_of({source, number}));
  }

  /// Returns the draws that have been given before a position.
  [[nodiscard]] drawn_samples drawn(std::uint64_t position, mixture_shuffle const& shuffle) const {
    std::uint64_t const in_window = position % shuffle.window;
    std::uint64_t const first = position - in_window;
    std::uint64_t const end =
        in_window == 0 ? position : first + window_length(first, shuffle.window);
    drawn_samples result{tree_.counts(end), {}};
    for (std::uint32_t i = 0; i != result.next.size(); ++i) {
      auto const [begin, last] = start_.skipped_of(i);
      std::uint64_t const count = last - begin;
      std::uint64_t const again = std::min(result.next[i], count);
      for (std::size_t k = begin + static_cast<std::size_t>(again); k != last; ++k) {
        result.skipped.push_back(start_.skipped[k]);
      }
      result.next[i] = start_.next_of(i) + (result.next[i] - again);
    }
    if (end == position) return result;
    // The shuffle moves these draws of the window behind the position.
    auto const order = order_of(first, shuffle);
    for (std::uint64_t k = in_window; k != end - first; ++k) {
      result.skipped.push_back(in_order_of_source(tree_.draw(first + order(k))));
    }
    std::sort(result.skipped.begin(), result.skipped.end(),
              [](source_draw const& one, source_draw const& two) {
                return std::tie(one.source, one.ordinal) < std::tie(two.source, two.ordinal);
              });
    return result;
  }

 private:
  [[nodiscard]] std::uint64_t window_length(std::uint64_t first, std::uint64_t window) const {
    return std::min(window, length_ - first);
  }

  /// Returns the order of the draws in the window that begins at `first`.
  [[nodiscard]] rng::permutation order_of(std::uint64_t first,
                                          mixture_shuffle const& shuffle) const {
    return rng::permutation(window_length(first, shuffle.window),
                            epoch_seed(shuffle.seed, windows_ + first / shuffle.window));
  }

  /// Replaces the number of a draw in this phase by its ordinal: skipped draws come first.
  [[nodiscard]] source_draw in_order_of_source(source_draw const& of) const {
    auto const [begin, end] = start_.skipped_of(of.source);
    std::uint64_t const count = end - begin;
    if (of.ordinal < count) {
      return start_.skipped[begin + static_cast<std::size_t>(of.ordinal)];
    }
    return {of.source, start_.next_of(of.source) + (of.ordinal - count)};
  }

  std::uint64_t begin_;
  std::uint64_t windows_;
  share_tree tree_;
  drawn_samples start_;
  std::uint64_t length_ = 0;
};

}  // namespace omnibal::inline v0::detail
