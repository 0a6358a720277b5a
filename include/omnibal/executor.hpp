// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Executors: functors by which algorithms use threads of the caller.

#include <omnibal/detail/function_ref.hpp>

#include <concepts>
#include <cstddef>

namespace omnibal::inline v0 {

/// A functor of (count, body) that calls `body(i)` exactly once for each i in [0, count), in any
/// order and on any threads. It returns after the last call has ended, and throws only after all
/// calls that began have ended. The calls do not throw and do not wait for each other.
///
/// `body` is a functor of one `std::size_t`; `std::function<void(std::size_t)>` holds a copy of it.
/// An algorithm that accepts an executor returns the same result with every executor.
template <class Function>
concept executor = std::invocable < Function const&,
        std::size_t, detail::function_ref<void(std::size_t)>
const& > ;

/// The executor that calls every body in order on the thread of the caller.
struct serial_executor {
  template <std::invocable<std::size_t> Body>
  constexpr void operator()(std::size_t count, Body const& body) const {
    for (std::size_t i = 0; i != count; ++i) body(i);
  }
};

}  // namespace omnibal::inline v0
