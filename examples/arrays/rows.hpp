// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Arrays as the samples and functors that the algorithms take.

#include "arrays.hpp"

#include <omnibal/executor.hpp>
#include <omnibal/resources.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>

namespace arrays {

[[noreturn]] inline void reject(std::string_view function, std::string const& text) {
  throw std::invalid_argument("omnibal::" + std::string(function) + ": " + text);
}

inline void check_count(std::string_view function, std::string const& what, std::size_t count,
                        std::size_t wanted) {
  if (count == wanted) return;
  reject(function, what + ", must be " + std::to_string(wanted));
}

template <std::size_t R>
using row = std::array<std::int64_t, R>;

template <std::size_t R>
[[nodiscard]] omnibal::resources<R> to_resources(row<R> const& amounts) {
  omnibal::resources<R> result{};
  for (std::size_t r = 0; r != R; ++r) result[r] = amounts[r];
  return result;
}

/// `values`, one for each kind, as resources.
template <std::size_t R>
[[nodiscard]] omnibal::resources<R> limits_of(std::string_view function, std::string const& name,
                                              integers values) {
  check_count(function, name + " has " + std::to_string(values.size()) + " resources",
              values.size(), R);
  omnibal::resources<R> result{};
  for (std::size_t r = 0; r != R; ++r) result[r] = values[r];
  return result;
}

/// Calls `body(samples, demand, kinds)` with a span of samples, a functor to what each takes, and
/// the number of kinds as a type: weights of one kind, which the algorithms know best, or
/// resources.
template <class Body>
auto with_rows(std::string_view function, demand_table const& table, Body const& body) {
  if (table.kinds == 0 || table.values.size() % table.kinds != 0) {
    reject(function, "there are " + std::to_string(table.values.size()) + " demands of " +
                         std::to_string(table.kinds) + " resources");
  }
  auto const rows_of = [&]<std::size_t R>(std::integral_constant<std::size_t, R> kinds) {
    // An array of integers has the layout of so many of them.
    auto const* const first = reinterpret_cast<row<R> const*>(table.values.data());
    return body(
        std::span<row<R> const>(first, table.values.size() / R),
        [](row<R> const& amounts) { return to_resources(amounts); }, kinds);
  };
  switch (table.kinds) {
    case 1: return body(table.values, std::identity{}, std::integral_constant<std::size_t, 1>{});
    case 2: return rows_of(std::integral_constant<std::size_t, 2>{});
    case 3: return rows_of(std::integral_constant<std::size_t, 3>{});
    default:
      reject(function, "demands have " + std::to_string(table.kinds) +
                           " resources, must be at most " + std::to_string(max_kinds));
  }
}

/// Calls `body(run)`, with the serial executor if `run` is empty.
template <class Body>
auto with_executor(executor const& run, Body const& body) {
  if (run) return body(run);
  return body(omnibal::serial_executor());
}

/// The number of samples of a table.
[[nodiscard]] inline std::size_t rows_in(demand_table const& table) {
  return table.kinds == 0 ? 0 : table.values.size() / table.kinds;
}

[[nodiscard]] inline std::size_t size_of(cost_list const& costs) {
  return std::visit([](auto const& list) { return list.size(); }, costs);
}

}  // namespace arrays
