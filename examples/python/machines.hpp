// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A machine as Python gives it.

#include "convert.hpp"

#include <omnibal/cost/machine.hpp>

namespace pybind11::detail {
template <>
struct type_caster<omnibal::machine> : convert::value_caster<omnibal::machine> {};
}  // namespace pybind11::detail
