// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>

namespace test {

/// A cost of a stage or its bytes, or whether it fits. Costs of the same type T are of one type, so
/// that a compiler makes each partition once for all of them: with a type for each it takes seconds
/// for every call.
template <class T>
using stage_function =
    std::function<T(std::size_t stage, std::size_t first_layer, std::size_t last_layer)>;

}  // namespace test
