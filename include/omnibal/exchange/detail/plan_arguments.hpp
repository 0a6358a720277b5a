#pragma once

/// \file
/// What ranks measure and compare before they plan: bytes, integer costs, options.

#include <omnibal/balance/index_measure.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/data_digest.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/exchange/make_plan_options.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace omnibal::inline v0::detail {

/// The bytes of samples: integers, by index.
template <class Measure>
concept index_bytes = index_weight<Measure> && std::integral<index_amount<Measure>>;

/// The bytes of a sample: integers.
template <class Function, class Sample>
concept bytes_function =
    cost_function<Function, Sample> && std::integral<demand_result<Function, Sample>>;

/// The bytes of `count` samples into memory that is kept. Errors: `std::invalid_argument` for a
/// range with another number of elements and bytes that are negative or above 2^63 - 1;
/// `std::overflow_error` where their sum leaves its type.
template <index_bytes Bytes>
void measure_bytes_into(std::string_view function, Bytes const& bytes, std::size_t count,
                        whole_costs<1>& result) {
  measure_costs_into(function, {"bytes", "the sum of the bytes"}, count,
                     amounts_by_index(function, "bytes", bytes, count), result);
}

/// floor(cost * 2^31 / largest), zero where the largest cost is zero. Precondition: `cost` is in
/// [0, largest].
[[nodiscard]] inline std::int64_t quantised(double cost, double largest) {
  if (!(largest > 0.0)) return 0;
  // In this order nothing overflows, and the factor is exact.
  return static_cast<std::int64_t>(cost / largest * 0x1p31);
}

/// `shape` is what else must be equal, such as the number of kinds of costs.
[[nodiscard]] inline std::uint64_t digest_of_options(make_plan_options const& options,
                                                     std::uint64_t shape) {
  data_digest digest;
  digest.add(std::uint64_t{options.ranks_per_node});
  digest.add(options.max_overload);
  digest.add(shape);
  return digest.value();
}

}  // namespace omnibal::inline v0::detail
