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
#include <vector>

namespace omnibal::inline v0 {

/// What variable-length attention kernels take for each group: where its sequences begin and end,
/// and how long the longest is. All numbers are tokens, as the 32-bit signed integers of those
/// kernels.
class sequence_offsets {
 public:
  /// The number of groups.
  [[nodiscard]] std::size_t size() const noexcept { return longest_.size(); }
  [[nodiscard]] bool empty() const noexcept { return longest_.empty(); }

  /// The cumulative lengths of a group: 0, l0, l0 + l1, ..., one more than it has samples.
  [[nodiscard]] std::span<std::int32_t const> operator[](std::size_t group) const& {
    return std::span(offsets_).subspan(begins_[group], begins_[group + 1] - begins_[group]);
  }
  /// The length of the longest sequence of a group, zero for an empty group.
  [[nodiscard]] std::int32_t longest(std::size_t group) const { return longest_[group]; }
  /// The number of tokens of a group.
  [[nodiscard]] std::int32_t tokens(std::size_t group) const { return (*this)[group].back(); }

  /// The cumulative lengths of all groups one after the other, group g at `begins()[g]`: one copy
  /// takes them to a device.
  [[nodiscard]] std::span<std::int32_t const> offsets() const& noexcept { return offsets_; }
  [[nodiscard]] std::span<std::size_t const> begins() const& noexcept { return begins_; }

  /// Of a temporary there are no spans.
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
  friend struct cu_seqlens_fn;

  std::vector<std::size_t> begins_;
  std::vector<std::int32_t> offsets_;
  std::vector<std::int32_t> longest_;
};

struct cu_seqlens_fn {
  /// The cumulative sequence lengths of each group, its samples in their order.
  ///
  /// `length` measures a sample in tokens. Complexity: linear. Memory: 4 bytes per item and 16 per
  /// group. Determinism: portable. Errors: `std::invalid_argument` for an index that is not in
  /// `samples` and for a negative length; `std::overflow_error` for a group of more than 2^31 - 1
  /// tokens.
  template <class Samples, class Length = std::identity>
    requires detail::samples_with_length<Samples, Length>
  [[nodiscard]] sequence_offsets operator()(groups_argument groups, Samples const& samples,
                                            Length const& length = {}) const {
    sequence_offsets result;
    result.begins_.reserve(groups.size() + 1);
    result.offsets_.reserve(groups.item_count() + groups.size());
    result.longest_.reserve(groups.size());
    result.begins_.push_back(0);
    for (std::size_t g = 0; g != groups.size(); ++g) {
      std::int64_t end = 0;
      std::int64_t longest = 0;
      result.offsets_.push_back(0);
      for (std::uint32_t const item : groups[g]) {
        std::int64_t const tokens = detail::tokens_at("cu_seqlens", samples, length, g, item);
        detail::checked_add("cu_seqlens", "the tokens of a group", end, tokens);
        if (end > std::numeric_limits<std::int32_t>::max()) {
          detail::throw_overflow("cu_seqlens",
                                 "the number of tokens of group " + detail::to_text(g));
        }
        result.offsets_.push_back(static_cast<std::int32_t>(end));
        longest = std::max(longest, tokens);
      }
      result.longest_.push_back(static_cast<std::int32_t>(longest));
      result.begins_.push_back(result.offsets_.size());
    }
    return result;
  }
};

/// Cumulative sequence lengths of groups; see `cu_seqlens_fn`.
inline constexpr cu_seqlens_fn cu_seqlens{};

}  // namespace omnibal::inline v0
