#pragma once

/// \file
/// Ranks in the order of their loads, of which a few change at a time.

#include <omnibal/balance/detail/ranked_load.hpp>
#include <omnibal/config.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// Words of `ranked_load`, the least first. Keeps its memory.
class sorted_loads {
 public:
  /// `load_of` gives the load of a rank.
  template <class LoadOf>
  void reset(std::size_t ranks, LoadOf const& load_of) {
    ranked_ = ranked_load<uint128>(ranks);
    words_.clear();
    words_.reserve(ranks);
    for (std::size_t rank = 0; rank != ranks; ++rank)
      words_.push_back(ranked_(load_of(rank), rank));
    std::sort(words_.begin(), words_.end());
  }

  [[nodiscard]] std::span<uint128 const> words() const { return words_; }
  [[nodiscard]] uint128 word(std::int64_t load, std::size_t rank) const {
    return ranked_(load, rank);
  }
  [[nodiscard]] std::uint32_t rank(uint128 word) const { return ranked_.part(word); }
  [[nodiscard]] std::int64_t load(uint128 word) const { return ranked_.load(word); }

  /// The lowest rank of those with the largest load. Precondition: there is a rank.
  [[nodiscard]] std::uint32_t heaviest() const {
    uint128 const first = ranked_(ranked_.load(words_.back()), 0);
    return ranked_.part(*std::lower_bound(words_.begin(), words_.end(), first));
  }

  /// A rank has another load. Complexity: linear in the ranks between both.
  void change(std::size_t rank, std::int64_t before, std::int64_t after) {
    auto const old = std::lower_bound(words_.begin(), words_.end(), ranked_(before, rank));
    uint128 const word = ranked_(after, rank);
    auto const place = std::lower_bound(words_.begin(), words_.end(), word);
    if (place > old) {
      *std::move(old + 1, place, old) = word;
    } else {
      std::move_backward(place, old, old + 1);
      *place = word;
    }
  }

 private:
  ranked_load<uint128> ranked_{0};
  std::vector<uint128> words_;
};

}  // namespace omnibal::inline v0::detail
