// SPDX-License-Identifier: Apache-2.0
#include "recipes.hpp"

#include <omnibal/omnibal.hpp>

#include <cmath>
#include <iostream>
#include <vector>

namespace cookbook {

void from_measured_batches() {
  struct batch {
    double images, tokens, milliseconds;
  };
  std::vector<batch> const measured{
      {4, 1000, 61}, {9, 2000, 117}, {2, 4000, 127}, {12, 500, 97}, {6, 3000, 128}};
  auto const cost =
      omnibal::affine_fit(measured, omnibal::demand_of(&batch::images, &batch::tokens),
                          &batch::milliseconds, {.signs = omnibal::fit_signs::not_negative});
  std::cout << cost.offset << " ms a batch, " << cost.slopes[0] << " an image, "
            << 1000 * cost.slopes[1] << " for 1000 tokens; off by " << cost.largest_residual
            << " at most\n"
            << "doubtful slopes: " << cost.collinear_kinds().size() << '\n';
  // What balancers take for a single sample: the same without the offset.
  std::cout << "a sample of 3 images and 700 tokens: "
            << cost.per_sample()(omnibal::resources{3.0, 700.0}) << " ms\n";
}

void from_a_measured_table() {
  struct point {
    std::int64_t tokens, nanoseconds;
  };
  std::vector<point> const points{{1024, 900'000}, {4096, 4'000'000}, {16384, 25'000'000}};
  auto const time = omnibal::measured_table(points, &point::tokens, &point::nanoseconds);
  for (std::int64_t const tokens : {2048, 8192, 16384}) {
    std::cout << time(tokens) << " ns for " << tokens << " tokens\n";
  }
  // It is a cost like any other.
  std::vector<std::int64_t> const lengths{16384, 8192, 8192, 4096, 4096, 2048, 1024};
  print(omnibal::lpt(lengths, 2, time));
}

void from_two_readings_of_memory() {
  // 2.5 GB were free with 4 layers checkpointed, 22.5 GB with 24.
  auto const line =
      omnibal::two_point_probe({.checkpointed_layers = 4, .free_bytes = 2'500'000'000},
                               {.checkpointed_layers = 24, .free_bytes = 22'500'000'000});
  std::cout << line.bytes_per_layer() / 1e9 << " GB a layer\n";
  for (std::int64_t const gigabytes : {10, 40}) {
    auto const needed = line.checkpointed_for(32, gigabytes * 1'000'000'000);
    if (needed.status == omnibal::solve_status::infeasible) {
      std::cout << gigabytes << " GB cannot stay free, " << needed.missing_bytes / 1'000'000'000
                << " GB are missing\n";
    } else {
      std::cout << needed.layers << " of 32 layers must be checkpointed for " << gigabytes
                << " GB to stay free\n";
    }
  }
}

void what_a_step_reached() {
  // A step of 8192 samples of 4096 tokens each, before and after its ranks were evened.
  auto const work = omnibal::document_cost(omnibal::llama3_8b);
  double const flops = 8192 * static_cast<double>(work(4096));
  for (double const seconds : {12.0, 9.0}) {
    std::cout << 100 * omnibal::flops_utilization({.flops = flops,
                                                   .seconds = seconds,
                                                   .gpus = 1024,
                                                   .peak_flops_per_gpu_second = 312e12})
              << " % of the peak, "
              << omnibal::gpu_days({.steps = 10'000, .seconds_per_step = seconds, .gpus = 1024})
              << " GPU days\n";
  }
}

void a_step_on_a_machine() {
  // The fastest of all configurations of 64 devices, with 256 sequences in a step.
  auto const plan = omnibal::plan_configuration(
      omnibal::llama3_8b, omnibal::machines::h100, {.sequences = 256, .tokens = 8192},
      {.devices = 64, .memory_bytes = 80'000'000'000, .reserve_bytes = 8'000'000'000});
  omnibal::training_step const& step = plan.best.step;
  std::cout << "tensor " << step.degrees.tensor << ", pipeline " << step.degrees.pipeline
            << ", context " << step.degrees.sequence << ", data " << step.degrees.data << ": "
            << std::round(1000 * plan.best.prediction.total()) << " ms, the next "
            << std::round(1000 * plan.runners_up[0].prediction.total()) << " ms\n";

  // Three measured runs correct the rate of matrix products of the own cluster.
  struct run {
    std::int64_t micro_batches;
    double seconds;
  };
  std::vector<run> const runs{{8, 3.7}, {16, 7.2}, {32, 14.0}};
  auto const predict = [&](run const& one, omnibal::machine const& on) {
    auto of_run = step;
    of_run.micro_batches = one.micro_batches;
    return omnibal::predict_step(omnibal::llama3_8b, of_run, on).total();
  };
  auto const fit = omnibal::fit_machine(runs, &run::seconds, predict, omnibal::machines::h100,
                                        {&omnibal::machine::matmul_flops_per_second});
  std::cout << std::round(fit.constants[0].value / 1e12) << " TFLOP/s, predictions miss by "
            << std::round(1000 * fit.mean_error) / 10 << " %\n";
}

}  // namespace cookbook

int main() {
  using namespace cookbook;
  run({{"from_measured_batches", from_measured_batches},
       {"from_a_measured_table", from_a_measured_table},
       {"from_two_readings_of_memory", from_two_readings_of_memory},
       {"what_a_step_reached", what_a_step_reached},
       {"a_step_on_a_machine", a_step_on_a_machine}});
}
