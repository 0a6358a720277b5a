#pragma once

/// \file
/// The bytes of samples.

#include <omnibal/balance/index_measure.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/integer_costs.hpp>

#include <concepts>
#include <cstddef>
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
                        integer_costs<1>& result) {
  measure_costs_into(function, {"bytes", "the sum of the bytes"}, count,
                     amounts_by_index(function, "bytes", bytes, count), result);
}

}  // namespace omnibal::inline v0::detail
