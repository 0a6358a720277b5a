#pragma once

/// \file
/// The least of many words that change one at a time.

#include <bit>
#include <cstddef>
#include <span>

namespace omnibal::inline v0::detail {

/// A tournament of words in memory of the caller: every inner node has the lesser of its two
/// children. A change costs the same for every word, one comparison without a branch for each
/// level, which is less than a heap pays for branches that no processor can foresee.
template <class Word>
class winner_tree {
 public:
  /// Above all words.
  static constexpr Word none = static_cast<Word>(~Word{0});

  /// The nodes that so many words take.
  [[nodiscard]] static std::size_t nodes_for(std::size_t words) { return 2 * std::bit_ceil(words); }

  /// Precondition: `nodes_for` gave the number of nodes, and they are all `none` or were filled.
  explicit winner_tree(std::span<Word> nodes) : nodes_(nodes.data()), leaves_(nodes.size() / 2) {}

  [[nodiscard]] Word least() const { return nodes_[1]; }
  [[nodiscard]] Word operator[](std::size_t index) const { return nodes_[leaves_ + index]; }

  /// Replaces one word.
  void set(std::size_t index, Word word) const {
    std::size_t node = leaves_ + index;
    nodes_[node] = word;
    while (node > 1) {
      Word const other = nodes_[node ^ 1];
      word = other < word ? other : word;
      node >>= 1;
      nodes_[node] = word;
    }
  }

  /// Replaces the first `count` words by `word(index)` and the others by `none`.
  template <class Function>
  void fill(std::size_t count, Function const& word) const {
    for (std::size_t i = 0; i != leaves_; ++i) nodes_[leaves_ + i] = i < count ? word(i) : none;
    for (std::size_t node = leaves_; --node > 0;) {
      Word const left = nodes_[2 * node];
      Word const right = nodes_[2 * node + 1];
      nodes_[node] = right < left ? right : left;
    }
  }

 private:
  Word* nodes_;
  std::size_t leaves_;
};

}  // namespace omnibal::inline v0::detail
