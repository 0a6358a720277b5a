#pragma once

/// \file
/// Checks of what user code groups: that samples are there, and that it is all of what it was
/// given.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>

#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace omnibal::inline v0::detail {

/// The sample that item `item` of group `group` names; throws where there is no such sample.
template <sample_range Samples>
[[nodiscard]] constexpr sample_reference<Samples> sample_at(std::string_view function,
                                                            Samples const& samples,
                                                            std::size_t group, std::uint32_t item) {
  if (item >= std::ranges::size(samples)) {
    throw_invalid(function, "group " + to_text(group) + " has item " + to_text(item) +
                                ", but there are " + to_text(std::ranges::size(samples)) +
                                " samples");
  }
  auto const position = static_cast<std::ranges::range_difference_t<Samples const>>(item);
  return std::ranges::begin(samples)[position];
}

/// Counts the items that user code names.
class each_once {
 public:
  /// `who` has been given `count` things, which are called `things` in error texts: "samples".
  each_once(std::string_view function, std::string_view who, std::string_view things,
            std::size_t count)
      : function_(function), who_(who), things_(things), seen_(count, 0) {}

  /// Errors: `std::invalid_argument` for an item that there is not, or that was named before.
  void take(std::span<std::uint32_t const> items) {
    for (std::uint32_t const item : items) {
      if (item >= seen_.size() || seen_[item]++ != 0) throw_item(item);
    }
    taken_ += items.size();
  }

  /// Errors: `std::invalid_argument` where one was not named.
  void finish() const {
    if (taken_ == seen_.size()) return;
    throw_invalid(function_, std::string(who_) + " has " + to_text(taken_) + " of " +
                                 to_text(seen_.size()) + " " + std::string(things_));
  }

 private:
  [[noreturn]] void throw_item(std::uint32_t item) const {
    bool const is_known = item < seen_.size();
    throw_invalid(function_, std::string(who_) + " names " + to_text(item) +
                                 (is_known ? " twice, of " : ", there are ") +
                                 to_text(seen_.size()) + " " + std::string(things_));
  }

  std::string_view function_;
  std::string_view who_;
  std::string_view things_;
  std::vector<std::uint8_t> seen_;
  std::size_t taken_ = 0;
};

}  // namespace omnibal::inline v0::detail
