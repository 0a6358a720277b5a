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

/// Makes costs up to `largest` integers on which ranks agree.
[[nodiscard]] inline fixed_point cost_shares(double largest) {
  return fixed_point::by_share(largest, 31);
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
