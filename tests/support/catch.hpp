// SPDX-License-Identifier: Apache-2.0
#pragma once

// Catch2 3.x where it is installed, else the single header of Catch2 2.x. Tests write what both
// have, and `Approx` and `Catch::Contains` for a part of a text as Catch2 2 spells them.

#include <string>

#if __has_include(<catch2/catch_test_macros.hpp>)
#include <catch2/catch_approx.hpp>
#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

using Catch::Approx;

namespace Catch {

/// Matches texts that contain the part. Its name in Catch2 3 is that of a matcher of ranges too.
inline auto Contains(std::string const& part) { return Matchers::ContainsSubstring(part); }

}  // namespace Catch
#else
#include <catch2/catch.hpp>
#endif
