// SPDX-License-Identifier: Apache-2.0
#include "recipes.hpp"

#include <omnibal/balance/lpt.hpp>
#include <omnibal/cost/affine_fit.hpp>
#include <omnibal/cost/device_model.hpp>
#include <omnibal/cost/layered_model.hpp>
#include <omnibal/cost/measured_table.hpp>
#include <omnibal/cost/models.hpp>
#include <omnibal/cost/transformer.hpp>
#include <omnibal/cost/two_point_probe.hpp>
#include <omnibal/demand.hpp>
#include <omnibal/group_loads.hpp>

#include <algorithm>
#include <iostream>
#include <vector>

namespace cookbook {

void what_a_layer_takes() {
  omnibal::transformer const layer{.hidden = 4096, .heads = 32, .kv_heads = 8, .mlp = 14336};
  std::vector<std::int64_t> const documents{3000, 1000, 96};
  auto const cost = layer({.documents = omnibal::sequences_of(documents)}, {.tensor = 2});
  using enum omnibal::recompute_choice;
  std::cout << cost.flops() / 1'000'000'000 << " GFLOP forward and backward on one of two ranks\n"
            << cost.parameters / 1'000'000 << " million parameters, "
            << cost.state_bytes() / 1'000'000 << " MB with gradients and optimizer\n"
            << cost[none].kept_bytes / 1'000'000 << " MB kept, "
            << cost[full].kept_bytes / 1'000'000 << " MB where all is recomputed\n"
            << cost.cut_bytes / 1'000'000 << " MB sent where the model is cut here\n";
}

void what_a_document_costs() {
  auto const flops = omnibal::document_cost(omnibal::llama3_8b);
  std::vector<std::int64_t> const lengths{64'000, 32'000, 32'000, 16'000, 16'000, 16'000, 16'000};
  // Halves that are even by tokens are not even by work.
  auto const show = [&](omnibal::grouping const& halves) {
    print(halves);
    for (auto const& load : omnibal::group_loads(halves, lengths, flops)) {
      std::cout << "  " << load[0] / 1'000'000'000'000 << " TFLOP\n";
    }
  };
  show(omnibal::lpt(lengths, 2));
  show(omnibal::lpt(lengths, 2, flops));
  std::cout << flops(64'000) / flops(16'000) << " times the work of 16,000 tokens\n"
            << omnibal::count_parameters(omnibal::llama3_8b).total << " parameters\n";
}

void a_model_of_your_own() {
  omnibal::vision_language_model const model{
      .vision = {.patches = {.hidden = 1024,
                             .image_size = 448,
                             .patch_size = 14,
                             .class_tokens = 1,
                             .positions = 1025},
                 .layers = 24,
                 .layer = {.hidden = 1024,
                           .heads = 16,
                           .mlp = 4096,
                           .image_size = 448,
                           .class_tokens = 1}},
      .connector = {.input = 4096, .hidden = 4096, .output = 4096, .tile_tokens = 256},
      .language = omnibal::llama3_8b};
  omnibal::micro_batch_work const batch{
      .tiles = 12, .documents = {.count = 3, .tokens = 4096, .squares = 6'000'000}};
  auto const layers = omnibal::layer_costs(model, batch);
  std::cout << layers.size() << " layers, " << omnibal::count_parameters(model).total
            << " parameters\n"
            << omnibal::tile_cost(model)(12) / 1'000'000'000 << " GFLOP for the tiles, "
            << omnibal::document_cost(model)(4096) / 1'000'000'000 << " for 4096 tokens\n";
}

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

}  // namespace cookbook

int main() {
  using namespace cookbook;
  run({{"what_a_layer_takes", what_a_layer_takes},
       {"what_a_document_costs", what_a_document_costs},
       {"a_model_of_your_own", a_model_of_your_own},
       {"from_measured_batches", from_measured_batches},
       {"from_a_measured_table", from_a_measured_table},
       {"from_two_readings_of_memory", from_two_readings_of_memory},
       {"what_a_step_reached", what_a_step_reached}});
}
