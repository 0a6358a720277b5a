// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Cumulative sequence lengths of packed samples, for variable-length attention.

#include <omnibal/check.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/metrics.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

namespace omnibal::inline v0 {

namespace detail {

struct sequence_writer;

}  // namespace detail

/// The arguments of variable-length attention kernels for each group: the begin and end of its
/// sequences, and the length of the longest sequence. All numbers are tokens, as 32-bit signed
/// integers, which these kernels require.
class sequence_offsets {
 public:
  /// Returns the number of groups.
  [[nodiscard]] std::size_t size() const noexcept { return longest_.size(); }
  [[nodiscard]] bool empty() const noexcept { return longest_.empty(); }

  /// Returns the cumulative lengths of a group: 0, l0, l0 + l1, and so on. The number of entries is
  /// one more than the number of samples.
  [[nodiscard]] std::span<std::int32_t const> operator[](std::size_t group) const& {
    return std::span(offsets_).subspan(begins_[group], begins_[group + 1] - begins_[group]);
  }
  /// Returns the length of the longest sequence of a group, zero for an empty group.
  [[nodiscard]] std::int32_t longest(std::size_t group) const { return longest_[group]; }
  /// Returns the number of tokens of a group.
  [[nodiscard]] std::int32_t tokens(std::size_t group) const { return (*this)[group].back(); }

  /// Returns the cumulative lengths of all groups one after the other, with group g at
  /// `begins()[g]`. One copy transfers them to a device.
  [[nodiscard]] std::span<std::int32_t const> offsets() const& noexcept { return offsets_; }
  [[nodiscard]] std::span<std::size_t const> begins() const& noexcept { return begins_; }

  /// A temporary returns no spans, because they would dangle.
  void operator[](std::size_t group) const&& = delete;
  void offsets() const&& = delete;
  void begins() const&& = delete;

  /// Writes the position of each token within its sequence, 0, 1, ..., l0 - 1, 0, 1, ..., and
  /// returns the end of the output. Complexity: linear in `tokens(group)`. Allocates nothing.
  template <std::output_iterator<std::int32_t> Output>
  Output position_ids(std::size_t group, Output output) const {
    auto const offsets = (*this)[group];
    for (std::size_t k = 1; k < offsets.size(); ++k) {
      for (std::int32_t id = 0; id != offsets[k] - offsets[k - 1]; ++id) *output++ = id;
    }
    return output;
  }

 private:
  friend struct detail::sequence_writer;

  std::vector<std::size_t> begins_{0};
  std::vector<std::int32_t> offsets_;
  std::vector<std::int32_t> longest_;
};

namespace detail {

/// A writer of offsets: call `start`, then for each group `open`, `push` with the tokens of each of
/// its sequences, and `close`. The memory of the result is reused.
struct sequence_writer {
  sequence_offsets& result;

  void start(std::size_t groups, std::size_t sequences) const {
    result.begins_.assign(1, 0);
    result.begins_.reserve(groups + 1);
    result.offsets_.clear();
    result.offsets_.reserve(sequences + groups);
    result.longest_.clear();
    result.longest_.reserve(groups);
  }
  void open() const {
    result.offsets_.push_back(0);
    result.longest_.push_back(0);
  }
  /// Precondition: `tokens` is not negative.
  void push(std::string_view function, std::int64_t tokens) const {
    constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
    std::int64_t const before = result.offsets_.back();
    if (tokens > most - before) {
      throw_overflow(function, "the number of tokens of group " + to_text(result.size() - 1));
    }
    result.offsets_.push_back(static_cast<std::int32_t>(before + tokens));
    result.longest_.back() = std::max(result.longest_.back(), static_cast<std::int32_t>(tokens));
  }
  void close() const { result.begins_.push_back(result.offsets_.size()); }
};

}  // namespace detail

struct cu_seqlens_fn {
  /// Returns the cumulative sequence lengths of each group, with the samples in the order of the
  /// group.
  ///
  /// `length` measures a sample in tokens. Complexity: linear. Memory: 4 bytes per item and 16 per
  /// group. Determinism: portable. Errors: `std::invalid_argument` if an index is not in `samples`
  /// or a length is negative; `std::overflow_error` if a group has more than 2^31 - 1 tokens.
  template <class Samples, class Length = std::identity>
    requires detail::samples_with_length<Samples, Length>
  [[nodiscard]] sequence_offsets operator()(groups_argument groups, Samples const& samples,
                                            Length const& length = {}) const {
    sequence_offsets result;
    detail::sequence_writer const writer{result};
    writer.start(groups.size(), groups.item_count());
    for (std::size_t g = 0; g != groups.size(); ++g) {
      writer.open();
      for (std::uint32_t const item : groups[g]) {
        writer.push(name, detail::tokens_at(name, samples, length, g, item));
      }
      writer.close();
    }
    return result;
  }

 private:
  static constexpr std::string_view name = "cu_seqlens";
};

/// Computes the cumulative sequence lengths of groups; see `cu_seqlens_fn`.
inline constexpr cu_seqlens_fn cu_seqlens{};

}  // namespace omnibal::inline v0
