#pragma once

/// \file
/// The options of `online_packer` and what a checkpoint keeps of it.

#include <omnibal/resources.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace omnibal::inline v0 {

/// How long samples may wait for company, and how much is tried for a group.
struct online_packer_options {
  /// The most samples that wait after a push. Should be some times the samples of a group.
  std::uint64_t buffer = 256;
  /// A sample leaves at the latest with the result of this many further pushes.
  std::uint64_t longest_wait = std::numeric_limits<std::uint64_t>::max();
  /// The most fillings that are compared for each group; time grows with them.
  std::uint64_t candidates = 6;

  [[nodiscard]] friend constexpr bool operator==(online_packer_options const&,
                                                 online_packer_options const&) = default;
};

/// A sample that waits in an `online_packer`: the user's id, the number of pushes before its own,
/// and its demand. Trivially copyable and without padding.
template <std::size_t R, weight T = std::int64_t>
struct waiting_sample {
  std::uint64_t id;
  std::uint64_t push;
  resources<R, T> demand;

  [[nodiscard]] friend constexpr bool operator==(waiting_sample const&,
                                                 waiting_sample const&) = default;
};

/// The part of `online_state` that has a fixed size. Trivially copyable and without padding.
template <std::size_t R, weight T = std::int64_t>
struct online_header {
  online_packer_options options;
  resources<R, T> capacity;
  /// Calls of `push` so far, oversized samples included.
  std::uint64_t pushes;

  [[nodiscard]] friend constexpr bool operator==(online_header const&,
                                                 online_header const&) = default;
};

/// All that the future of an `online_packer` depends on: a header and one array of records, in the
/// order of the pushes. Both can be written to a file byte by byte.
template <std::size_t R, weight T = std::int64_t>
struct online_state {
  online_header<R, T> header;
  std::vector<waiting_sample<R, T>> waiting;

  [[nodiscard]] friend bool operator==(online_state const&, online_state const&) = default;
};

/// What a call of `online_packer` hands out.
template <std::size_t R, weight T = std::int64_t>
struct online_result {
  /// The samples of the group that leaves, empty where none does; valid until the next call that
  /// changes the packer.
  std::span<std::uint64_t const> ids;
  /// The sum of their demands, which fits the capacity.
  resources<R, T> load;
  /// The sample just pushed exceeds the capacity alone: it is not taken and in no group.
  bool oversized;

  /// True where a group leaves.
  [[nodiscard]] constexpr explicit operator bool() const { return !ids.empty(); }
};

}  // namespace omnibal::inline v0
