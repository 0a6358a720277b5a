#pragma once

/// \file
/// A load and the number of its part in one word.

#include <bit>
#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::detail {

/// Words with the load above the number of the part, so that the least word names the least load,
/// and of equal ones the lowest part.
template <class Word>
class ranked_load {
 public:
  /// True where loads up to `total` fit, and no word has all bits set.
  [[nodiscard]] static constexpr bool can_hold(std::int64_t total, std::size_t parts) {
    auto const load_bits =
        static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(total)));
    return load_bits + static_cast<std::size_t>(std::bit_width(parts)) < 8 * sizeof(Word);
  }

  explicit constexpr ranked_load(std::size_t parts)
      : part_bits_(static_cast<int>(std::bit_width(parts))) {}

  [[nodiscard]] constexpr Word operator()(std::int64_t load, std::size_t part) const {
    return static_cast<Word>(load) << part_bits_ | static_cast<Word>(part);
  }
  [[nodiscard]] constexpr std::int64_t load(Word word) const {
    return static_cast<std::int64_t>(word >> part_bits_);
  }
  [[nodiscard]] constexpr std::uint32_t part(Word word) const {
    return static_cast<std::uint32_t>(word & ((Word{1} << part_bits_) - 1));
  }

 private:
  int part_bits_;
};

}  // namespace omnibal::inline v0::detail
