// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Radix tries of sequences of integers.

#include <omnibal/prefix/prefix_forest.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <tuple>
#include <vector>

namespace omnibal::inline v0::detail {

/// Returns the first position in [from, end) at which two arrays differ, or `end`.
template <class Token>
[[nodiscard]] std::size_t mismatch_after(Token const* left, Token const* right, std::size_t from,
                                         std::size_t end) {
  constexpr std::size_t block = 256 / sizeof(Token);
  while (end - from >= block &&
         std::memcmp(left + from, right + from, block * sizeof(Token)) == 0) {
    from += block;
  }
  while (from != end && left[from] == right[from]) ++from;
  return from;
}

/// Builds the radix trie of sequences by branches. A branch is a set of sequences with equal tokens
/// up to a position. The first sequence of a branch is compared with each other sequence, which
/// leaves the branch at the first difference. Sequences that leave at the same position with the
/// same token form a new branch, which continues after that position. Each token of a sequence is
/// therefore compared once.
template <class Token>
class prefix_trie {
 public:
  /// Creates a builder for the sequences `rows`, which must outlive this object.
  explicit prefix_trie(std::span<std::span<Token const> const> rows) : rows_(rows) {}

  /// Writes the nodes in depth-first order, with lengths in numbers of tokens.
  void write(forest_writer const& writer) {
    writer.start(rows_.size());
    members_.resize(rows_.size());
    for (std::uint32_t i = 0; i != rows_.size(); ++i) members_[i] = {0, i};
    leave(writer, 0, members_.size(), prefix_forest::no_parent);
    while (!pending_.empty()) {
      branch const next = pending_.back();
      pending_.pop_back();
      grow(writer, next);
    }
  }

 private:
  /// A sequence, and the position at which it leaves the first sequence of its branch.
  struct member {
    std::size_t position;
    std::uint32_t sequence;
  };
  /// The members [first, last) with equal tokens up to and including `position`, below `parent`.
  struct branch {
    std::size_t first;
    std::size_t last;
    std::size_t position;
    std::uint32_t parent;
  };

  [[nodiscard]] bool ends(member const& one) const {
    return rows_[one.sequence].size() == one.position;
  }

  /// Writes the nodes of the path of the first sequence of a branch, and the branches that leave
  /// it.
  void grow(forest_writer const& writer, branch const& now) {
    std::uint32_t const first = members_[now.first].sequence;
    auto const path = rows_[first];
    for (std::size_t k = now.first + 1; k != now.last; ++k) {
      auto const row = rows_[members_[k].sequence];
      members_[k].position = mismatch_after(path.data(), row.data(), now.position + 1,
                                            std::min(path.size(), row.size()));
    }
    std::sort(members_.begin() + static_cast<std::ptrdiff_t>(now.first) + 1,
              members_.begin() + static_cast<std::ptrdiff_t>(now.last),
              [](member const& left, member const& right) {
                return std::tie(left.position, left.sequence) <
                       std::tie(right.position, right.sequence);
              });
    std::uint32_t parent = now.parent;
    std::size_t begin = now.position;
    for (std::size_t k = now.first + 1; k != now.last;) {
      std::size_t const position = members_[k].position;
      std::size_t after = k;
      while (after != now.last && members_[after].position == position) ++after;
      parent = writer.push(parent, position - begin, first);
      begin = position;
      leave(writer, k, after, parent);
      k = after;
    }
    if (begin != path.size()) parent = writer.push(parent, path.size() - begin, first);
    writer.end(first, parent);
  }

  /// Handles the members [first, last), which leave at one position. Sequences that end there get
  /// `parent` as their end. The others form branches by their next tokens. Members are in the order
  /// of their sequences. The branch of the lowest sequence is on top of the pending branches.
  void leave(forest_writer const& writer, std::size_t first, std::size_t last,
             std::uint32_t parent) {
    auto const begin = members_.begin() + static_cast<std::ptrdiff_t>(first);
    auto const end = members_.begin() + static_cast<std::ptrdiff_t>(last);
    auto const rest =
        std::stable_partition(begin, end, [this](member const& one) { return ends(one); });
    if (begin != rest) {
      // Sequences without tokens end at a node of their own.
      std::uint32_t const node =
          parent == prefix_forest::no_parent ? writer.push(parent, 0, begin->sequence) : parent;
      for (auto one = begin; one != rest; ++one) writer.end(one->sequence, node);
    }
    if (rest == end) return;
    std::size_t const position = rest->position;
    std::sort(rest, end, [&](member const& left, member const& right) {
      Token const left_token = rows_[left.sequence][position];
      Token const right_token = rows_[right.sequence][position];
      if (left_token != right_token) return left_token < right_token;
      return left.sequence < right.sequence;
    });
    std::size_t const mark = pending_.size();
    for (auto one = rest; one != end;) {
      Token const token = rows_[one->sequence][position];
      auto after = one;
      while (after != end && rows_[after->sequence][position] == token) ++after;
      pending_.push_back({static_cast<std::size_t>(one - members_.begin()),
                          static_cast<std::size_t>(after - members_.begin()), position, parent});
      one = after;
    }
    std::sort(pending_.begin() + static_cast<std::ptrdiff_t>(mark), pending_.end(),
              [this](branch const& left, branch const& right) {
                return members_[left.first].sequence > members_[right.first].sequence;
              });
  }

  std::span<std::span<Token const> const> rows_;
  std::vector<member> members_;
  std::vector<branch> pending_;
};

template <class Token>
void build_trie(std::vector<std::span<Token const>> const& rows, forest_writer const& writer) {
  prefix_trie<Token>(std::span<std::span<Token const> const>(rows)).write(writer);
}

}  // namespace omnibal::inline v0::detail
