// SPDX-License-Identifier: Apache-2.0 With flags such as -ffast-math, numbers that are not finite
// are still errors: returns 0 if every call throws.

#include <omnibal/balance/lpt.hpp>
#include <omnibal/metrics.hpp>
#include <omnibal/pack/next_fit.hpp>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

int failures = 0;

template <class Call>
void expect_error(std::string const& what, Call const& call) {
  try {
    call();
  } catch (std::logic_error const&) {
    return;
  } catch (std::runtime_error const&) {
    return;
  }
  std::printf("no error for %s\n", what.c_str());
  ++failures;
}

}  // namespace

int main() {
  std::vector<double> const valid(4, 1.0);
  for (std::string const text : {"nan", "-nan", "inf", "-inf", "-1"}) {
    // Read, because a compiler could assume something about a constant.
    double const bad = std::strtod(text.c_str(), nullptr);
    std::vector<double> numbers(8, 2.0);
    numbers[3] = bad;
    expect_error("a cost of " + text, [&] { (void)omnibal::lpt(numbers, 2, std::identity{}); });
    expect_error("a demand of " + text,
                 [&] { (void)omnibal::next_fit(numbers, std::identity{}, 4.0); });
    expect_error("a capacity of " + text,
                 [&] { (void)omnibal::next_fit(valid, std::identity{}, bad); });
    expect_error("a load of " + text, [&] { (void)omnibal::dist_ratio(numbers); });
  }
  std::vector<double> const large(4, std::numeric_limits<double>::max());
  expect_error("an infinite sum", [&] { (void)omnibal::lpt(large, 2, std::identity{}); });
  return failures == 0 ? 0 : 1;
}
