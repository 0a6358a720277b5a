#pragma once

/// \file
/// The samples of an epoch in the order in which they are taken.

#include <omnibal/rng/permutation.hpp>
#include <omnibal/sample/epoch.hpp>

#include <cstdint>

namespace omnibal::inline v0::detail {

/// The samples of an epoch: first the last `carried` of the epoch before, then every sample once.
class epoch_order {
 public:
  constexpr epoch_order(std::uint64_t samples, std::uint64_t seed, std::uint64_t epoch,
                        std::uint64_t carried, sample_order order)
      : current_(samples, epoch_seed(seed, epoch)),
        previous_(samples, epoch_seed(seed, epoch - 1)),
        carried_(carried),
        order_(order) {}

  [[nodiscard]] constexpr std::uint64_t size() const { return carried_ + current_.size(); }

  /// The sample at a position. Precondition: `position < size()`.
  [[nodiscard]] constexpr std::uint64_t operator()(std::uint64_t position) const {
    bool const is_carried = position < carried_;
    std::uint64_t const place =
        is_carried ? current_.size() - carried_ + position : position - carried_;
    if (order_ == sample_order::given) return place;
    return is_carried ? previous_(place) : current_(place);
  }

 private:
  rng::permutation current_;
  rng::permutation previous_;
  std::uint64_t carried_;
  sample_order order_;
};

}  // namespace omnibal::inline v0::detail
