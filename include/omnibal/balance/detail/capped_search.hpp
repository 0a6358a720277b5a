#pragma once

/// \file
/// Whether few samples fit a number of parts, by trying all.

#include <omnibal/config.hpp>
#include <omnibal/detail/capacity_shares.hpp>
#include <omnibal/detail/measure.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <type_traits>
#include <vector>

namespace omnibal::inline v0::detail {

/// What a search has come to.
enum class search_end {
  found,      ///< the samples fit
  exhausted,  ///< they do not, as all was tried
  stopped,    ///< nodes were used up
};

/// Places samples from the largest to the smallest, depth first, passing over parts that are like
/// another part and over rests that exceed the room.
template <class Layout>
class capped_search {
 public:
  /// `input` must outlive this object.
  capped_search(measured<Layout> const& input, std::size_t parts)
      : input_(input),
        limit_(input.capacity),
        order_(input.size()),
        rest_(input.size() + 1),
        loads_(parts, amounts_type{}),
        placed_(input.size(), 0),
        before_(input.size()) {
    if constexpr (!is_exact) {
      // With this much more room a search that fails proves something, for all rounding.
      for (auto& amount : limit_.amounts) amount *= 1 + 1e-12;
    }
    capacity_shares<kinds, weight_type> const share(input.capacity);
    std::vector<std::uint64_t> sizes(input.size(), 0);
    for (std::size_t k = 0; k != sizes.size(); ++k) {
      for (std::size_t r = 0; r != kinds; ++r)
        sizes[k] += share(input.amounts(static_cast<std::uint32_t>(k))[r], r);
    }
    std::iota(order_.begin(), order_.end(), 0u);
    std::sort(order_.begin(), order_.end(), [&](std::uint32_t a, std::uint32_t b) {
      return sizes[a] > sizes[b] || (sizes[a] == sizes[b] && a < b);
    });
    for (std::size_t depth = order_.size(); depth-- != 0;) {
      rest_[depth] = rest_[depth + 1];
      for (std::size_t r = 0; r != kinds; ++r) rest_[depth].sums[r] += demand(depth)[r];
    }
  }

  /// Places at most `nodes` samples, those placed again counted again.
  [[nodiscard]] search_end run(std::uint64_t nodes) {
    std::size_t depth = 0;
    std::size_t first = 0;
    while (depth != order_.size()) {
      std::size_t const part = next_part(depth, first);
      if (part == loads_.size()) {
        if (depth == 0) return search_end::exhausted;
        --depth;
        loads_[placed_[depth]] = before_[depth];
        first = placed_[depth] + 1;
        continue;
      }
      if (nodes-- == 0) return search_end::stopped;
      placed_[depth] = static_cast<std::uint32_t>(part);
      before_[depth] = loads_[part];
      loads_[part] += demand(depth);
      ++depth;
      first = holds_rest(depth) ? 0 : loads_.size();
    }
    return search_end::found;
  }

  /// The part of each sample. Precondition: they were found to fit.
  [[nodiscard]] std::vector<std::uint32_t> part_of() const {
    std::vector<std::uint32_t> result(order_.size());
    for (std::size_t depth = 0; depth != order_.size(); ++depth) {
      result[order_[depth]] = placed_[depth];
    }
    return result;
  }

 private:
  using amounts_type = typename Layout::amounts_type;
  using weight_type = typename amounts_type::value_type;
  static constexpr std::size_t kinds = amounts_type::size();
  static constexpr bool is_exact = std::integral<weight_type>;
  using sum_type = std::conditional_t<is_exact, int128, double>;

  struct demand_sums {
    sum_type sums[kinds] = {};
  };

  [[nodiscard]] amounts_type demand(std::size_t depth) const {
    return input_.amounts(order_[depth]);
  }

  /// The first part from `first` on that can take the sample; of parts with equal loads only the
  /// first counts. A sample like the one before goes into no earlier part.
  [[nodiscard]] std::size_t next_part(std::size_t depth, std::size_t first) const {
    amounts_type const amounts = demand(depth);
    if (depth != 0 && amounts == demand(depth - 1)) {
      first = std::max<std::size_t>(first, placed_[depth - 1]);
    }
    for (std::size_t part = first; part < loads_.size(); ++part) {
      if (!amounts.fits(limit_ - loads_[part])) continue;
      bool is_new = true;
      for (std::size_t other = 0; other != part && is_new; ++other) {
        is_new = !(loads_[other] == loads_[part]);
      }
      if (is_new) return part;
    }
    return loads_.size();
  }

  /// False where the samples from `depth` on exceed the room of all parts.
  [[nodiscard]] bool holds_rest(std::size_t depth) const {
    for (std::size_t r = 0; r != kinds; ++r) {
      sum_type room = 0;
      for (amounts_type const& load : loads_) room += limit_[r] - load[r];
      sum_type const missing = rest_[depth].sums[r];
      if constexpr (is_exact) {
        if (missing > room) return false;
      } else {
        if (missing * (1 - 1e-9) > room) return false;
      }
    }
    return true;
  }

  measured<Layout> const& input_;
  amounts_type limit_;
  std::vector<std::uint32_t> order_;
  /// By depth: what the samples that are not placed take.
  std::vector<demand_sums> rest_;
  std::vector<amounts_type> loads_;
  std::vector<std::uint32_t> placed_;
  /// The load of its part before each placed sample. Taking the sample out of the sum again would
  /// leave another one where amounts float, more so from node to node.
  std::vector<amounts_type> before_;
};

}  // namespace omnibal::inline v0::detail
