// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"

#include <omnibal/cost/fit_machine.hpp>
#include <omnibal/cost/kernel_times.hpp>
#include <omnibal/cost/machines.hpp>

#include <cmath>
#include <cstddef>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::machine;

/// A run of one product and of moved bytes.
struct simple_run {
  double side = 0;
  double bytes = 0;
  double seconds = 0;
};

double predict(simple_run const& run, machine const& on) {
  omnibal::matmul_time const product;
  omnibal::memory_time const memory;
  return product(on, {.rows = run.side, .columns = run.side, .depth = run.side},
                 omnibal::matmul_precision::bf16) +
         memory(on, run.bytes);
}

std::vector<simple_run> runs_of(machine const& on) {
  std::vector<simple_run> result;
  for (double side = 256; side < 20'000; side *= 2) {
    for (double const bytes : {0.0, 1e8, 1e10}) {
      simple_run run{.side = side, .bytes = bytes};
      run.seconds = predict(run, on);
      result.push_back(run);
    }
  }
  return result;
}

std::vector<double machine::*> const three{&machine::matmul_flops_per_second,
                                           &machine::operand_bytes_per_second,
                                           &machine::memory_bytes_per_second};

omnibal::machine_fit fit(std::vector<simple_run> const& runs,
                         std::vector<double machine::*> const& constants = three,
                         omnibal::fit_machine_options const& options = {.prior = 1e-4}) {
  return omnibal::fit_machine(runs, &simple_run::seconds, predict, omnibal::machines::h100_start,
                              constants, options);
}

std::string error_of(std::vector<simple_run> const& runs,
                     std::vector<double machine::*> const& constants,
                     omnibal::fit_machine_options const& options = {}) {
  return test::error_text<std::invalid_argument>(
      [&] { static_cast<void>(fit(runs, constants, options)); });
}

machine true_machine() {
  machine on = omnibal::machines::h100_start;
  on.matmul_flops_per_second = 500e12;
  on.operand_bytes_per_second = 9e12;
  on.memory_bytes_per_second = 1e12;
  return on;
}

}  // namespace

// Constants that the runs determine must come back exactly, with a small error.
TEST_CASE("fit_machine finds the machine of exact runs") {
  auto const found = fit(runs_of(true_machine()));
  for (auto const member : three) {
    CHECK(found.fitted.*member == Approx(true_machine().*member).epsilon(1e-3));
  }
  CHECK(found.fitted.hop_seconds == omnibal::machines::h100_start.hop_seconds);
  CHECK(found.mean_error < 1e-4);
  REQUIRE(found.constants.size() == 3);
  CHECK(found.constants[2].name == "memory_bytes_per_second");
  CHECK(found.constants[2].value == found.fitted.memory_bytes_per_second);
  for (auto const& constant : found.constants) {
    CHECK(constant.relative_error < 1e-3);
    CHECK(constant.inflation < 10);
    CHECK_FALSE(constant.is_at_bound);
  }
}

// Runs repeat within a few percent; one wrong run must not move the constants.
TEST_CASE("fit_machine is robust and says how certain it is") {
  auto runs = runs_of(true_machine());
  for (std::size_t i = 0; i != runs.size(); ++i) runs[i].seconds *= i % 2 == 0 ? 1.02 : 0.98;
  auto const noisy = fit(runs);
  runs[3].seconds *= 3;
  auto const wrong = fit(runs);
  CHECK(wrong.largest_error > 0.5);
  for (std::size_t k = 0; k != three.size(); ++k) {
    double const value = true_machine().*three[k];
    auto const& constant = noisy.constants[k];
    CHECK(std::abs(std::log(constant.value / value)) < 4 * constant.relative_error);
    CHECK(constant.relative_error > 1e-3);
    CHECK(wrong.constants[k].value == Approx(constant.value).epsilon(0.15));
  }
}

// A constant without an effect stays at its start, and two that do the same have a high inflation.
TEST_CASE("fit_machine shows constants that the runs do not determine") {
  auto const found =
      fit(runs_of(true_machine()), {&machine::matmul_flops_per_second, &machine::hop_seconds});
  CHECK(found.fitted.hop_seconds == omnibal::machines::h100_start.hop_seconds);
  CHECK(found.fitted.matmul_flops_per_second < 600e12);
  CHECK(found.constants[1].inflation == Approx(1));
  CHECK(found.constants[1].relative_error > 1);
  auto runs = runs_of(true_machine());
  std::erase_if(runs, [](simple_run const& run) { return run.side != 256; });
  for (std::size_t i = 0; i != runs.size(); ++i) runs[i].seconds *= i % 2 == 0 ? 1.02 : 0.98;
  auto const traded = fit(runs);
  auto const alone = fit(runs, {three[0]});
  CHECK(traded.constants[0].inflation > 10);
  CHECK(alone.constants[0].inflation == Approx(1));
  CHECK(traded.constants[0].relative_error > 3 * alone.constants[0].relative_error);
}

// A bound that is reached must be visible.
TEST_CASE("fit_machine reports a constant at its bound") {
  auto const found = fit(runs_of(true_machine()), three, {.prior = 1e-4, .bound_factor = 1.5});
  CHECK(found.constants[2].is_at_bound);
  CHECK(found.constants[2].value ==
        Approx(omnibal::machines::h100_start.memory_bytes_per_second / 1.5));
}

// A message must name the argument that is wrong.
TEST_CASE("fit_machine names what it refuses") {
  auto const runs = runs_of(true_machine());
  CHECK(error_of(runs, {}).find("constants is empty") != std::string::npos);
  CHECK(error_of(runs, {three[0], three[0]}).find("matmul_flops_per_second twice") !=
        std::string::npos);
  CHECK(error_of({runs[0]}, three).find("runs has 1 elements, fewer than the 3 constants") !=
        std::string::npos);
  CHECK(error_of(runs, three, {.prior = 0}).find("options.prior is 0") != std::string::npos);
  CHECK(error_of(runs, three, {.bound_factor = 1}).find("options.bound_factor is 1") !=
        std::string::npos);
  auto wrong = runs;
  wrong[2].seconds = 0;
  CHECK(error_of(wrong, three).find("seconds[2] is 0") != std::string::npos);
  machine start = omnibal::machines::h100_start;
  start.hop_seconds = 0;
  auto const text = test::error_text<std::invalid_argument>([&] {
    static_cast<void>(
        omnibal::fit_machine(runs, &simple_run::seconds, predict, start, {&machine::hop_seconds}));
  });
  CHECK(text.find("start.hop_seconds is 0") != std::string::npos);
  auto const free = [](simple_run const&, machine const&) { return 0.0; };
  auto const unpredicted = test::error_text<std::invalid_argument>([&] {
    static_cast<void>(omnibal::fit_machine(runs, &simple_run::seconds, free,
                                           omnibal::machines::h100_start, three));
  });
  CHECK(unpredicted.find("predict[0] is 0") != std::string::npos);
}
