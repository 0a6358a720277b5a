#pragma once

/// \file
/// How many packs each level of a hierarchy leaves to the next epoch, as one number of a state.

#include <omnibal/check.hpp>
#include <omnibal/config.hpp>
#include <omnibal/hierarchy/level_packing.hpp>
#include <omnibal/hierarchy/packing_level.hpp>
#include <omnibal/sample/sampler_state.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

namespace omnibal::inline v0::detail {

/// Numbers of packs of the levels, in a mixed radix. A level leaves over fewer packs than it has,
/// and fewer than run at a time on the most ranks that there may be.
class level_carry {
 public:
  explicit level_carry(std::span<packed_level const> levels) {
    for (packed_level const& level : levels) {
      auto const at_once = static_cast<std::uint64_t>(most_ranks) /
                           static_cast<std::uint64_t>(level.setting.sequence);
      radices_.push_back(
          std::max<std::uint64_t>(1, std::min<std::uint64_t>(level.group_count, at_once)));
    }
  }

  /// Throws where the numbers of some levels do not fit into one of 64 bits.
  void check_room(std::string_view function) const {
    uint128 product = 1;
    for (std::uint64_t const radix : radices_) {
      product *= radix;
      if (product <= std::numeric_limits<std::uint64_t>::max()) continue;
      throw_invalid(function, "options.remainder is carry, but what " + to_text(radices_.size()) +
                                  " levels with so many groups leave over fits no state");
    }
  }

  [[nodiscard]] std::uint64_t joined(std::span<std::uint64_t const> numbers) const {
    std::uint64_t result = 0;
    for (std::size_t level = radices_.size(); level-- != 0;) {
      result = result * radices_[level] + numbers[level];
    }
    return result;
  }

  /// The number of each level; throws where no sampler of these levels could have `state.carried`.
  [[nodiscard]] std::vector<std::uint64_t> split(std::string_view function, std::uint64_t carried,
                                                 std::uint64_t epoch) const {
    std::vector<std::uint64_t> result;
    result.reserve(radices_.size());
    std::uint64_t rest = carried;
    for (std::uint64_t const radix : radices_) {
      result.push_back(rest % radix);
      rest /= radix;
    }
    if (rest != 0 || (epoch == 0 && carried != 0)) {
      throw_invalid(function, "state.carried is " + to_text(carried) + " in epoch " +
                                  to_text(epoch) + ", which these levels cannot have left over");
    }
    return result;
  }

 private:
  std::vector<std::uint64_t> radices_;
};

}  // namespace omnibal::inline v0::detail
