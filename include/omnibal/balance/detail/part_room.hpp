#pragma once

/// \file
/// How many samples parts have and may have.

#include <omnibal/balance/count_policy.hpp>
#include <omnibal/check.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace omnibal::inline v0::detail {

/// Counts the samples of each part under a policy. As long as each sample is put into a part with
/// room there is room for all.
class part_room {
 public:
  /// Without limits.
  explicit part_room(std::size_t parts)
      : counts_(parts, 0), floor_(std::numeric_limits<std::size_t>::max()) {}

  /// Throws `std::invalid_argument` where the policy asks for equal counts that cannot be.
  part_room(std::string_view function, count_policy policy, std::size_t samples, std::size_t parts)
      : part_room(parts) {
    if (policy == count_policy::any) return;
    floor_ = samples / parts;
    extra_ = samples % parts;
    if (policy == count_policy::equal && extra_ != 0) {
      throw_invalid(function, to_text(samples) + " samples do not give " + to_text(parts) +
                                  " parts with equal counts");
    }
  }

  [[nodiscard]] std::size_t parts() const { return counts_.size(); }
  /// The number of samples in a part.
  [[nodiscard]] std::size_t operator[](std::size_t part) const { return counts_[part]; }
  [[nodiscard]] bool is_full(std::size_t part) const {
    return counts_[part] >= floor_ + (extra_ != 0 ? 1 : 0);
  }

  /// One more sample in a part with room. True where that leaves less room in other parts too,
  /// which happens at most once.
  bool add(std::size_t part) { return ++counts_[part] > floor_ && --extra_ == 0; }

  /// Takes an `add` back.
  void remove(std::size_t part) {
    if (counts_[part]-- > floor_) ++extra_;
  }

 private:
  std::vector<std::uint32_t> counts_;
  std::size_t floor_;
  /// How many more parts may have one sample above the floor.
  std::size_t extra_ = 0;
};

}  // namespace omnibal::inline v0::detail
