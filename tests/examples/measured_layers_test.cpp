// SPDX-License-Identifier: Apache-2.0
#include "measured_layers.hpp"

#include "input_error.hpp"
#include "model_file.hpp"
#include "temporary_directory.hpp"

#include <omnibal/cost/layered_model.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <catch.hpp>

namespace {

using namespace examples;

constexpr omnibal::device_model device{.flops_per_second = 100'000'000'000'000};

omnibal::micro_batch_work batch_of(std::int64_t tiles, std::int64_t documents,
                                   std::int64_t length) {
  return {.tiles = tiles,
          .documents = omnibal::equal_sequences({.count = documents, .length = length})};
}

model_description const& pair() {
  static model_description const model = find_model("internvit-300m+llama3-8b", model_parts::both);
  return model;
}

/// Every layer took `factor` times what is modeled.
measured_layers scaled(std::vector<omnibal::layer_cost> const& modeled, double factor) {
  measured_layers result;
  for (omnibal::layer_cost const& cost : modeled) {
    auto const times = [&](omnibal::layer_work const& work) {
      return std::llround(factor * static_cast<double>(device(work)));
    };
    result.push_back(measured_layer{.forward_nanoseconds = times(cost.forward),
                                    .backward_nanoseconds = times(cost.backward)});
  }
  return result;
}

}  // namespace

TEST_CASE("layers that take twice as long take twice as long for every micro-batch") {
  auto const reference = batch_of(8, 2, 1024);
  auto const modeled = omnibal::layer_costs(pair(), reference);
  layer_profile const profile(scaled(modeled, 2), reference, modeled, device);
  for (auto const& batch : {batch_of(8, 2, 1024), batch_of(3, 5, 700), batch_of(0, 1, 4096)}) {
    auto const before = omnibal::layer_costs(pair(), batch);
    auto after = before;
    profile.correct(batch, after);
    for (std::size_t l = 0; l != after.size(); ++l) {
      CHECK(static_cast<double>(after[l].forward.flops) ==
            Approx(2 * static_cast<double>(before[l].forward.flops)).epsilon(1e-3));
      CHECK(static_cast<double>(after[l].backward.flops) ==
            Approx(2 * static_cast<double>(before[l].backward.flops)).epsilon(1e-3));
      CHECK(static_cast<double>(after[l].choices[2].extra.flops) ==
            Approx(2 * static_cast<double>(before[l].choices[2].extra.flops)).epsilon(1e-3));
      CHECK(after[l].choices[0].kept_bytes == before[l].choices[0].kept_bytes);
      CHECK(after[l].state_bytes() == before[l].state_bytes());
    }
  }
}

TEST_CASE("measured bytes change what is kept in proportion and replace the state") {
  auto const reference = batch_of(8, 2, 1024);
  auto const modeled = omnibal::layer_costs(pair(), reference);
  auto measured = scaled(modeled, 1);
  std::size_t const layer = 30;
  for (std::size_t l = 0; l != measured.size(); ++l) {
    if (l != layer) measured[l].reset();
  }
  measured[layer]->kept_bytes = modeled[layer].choices[0].kept_bytes / 2;
  measured[layer]->state_bytes = 12'345;
  layer_profile const profile(measured, reference, modeled, device);
  auto const batch = batch_of(1, 3, 2048);
  auto const before = omnibal::layer_costs(pair(), batch);
  auto after = before;
  profile.correct(batch, after);
  CHECK(after[layer].state_bytes() == 12'345);
  for (std::size_t const choice : {std::size_t{0}, std::size_t{1}}) {
    CHECK(static_cast<double>(after[layer].choices[choice].kept_bytes) ==
          Approx(0.5 * static_cast<double>(before[layer].choices[choice].kept_bytes)));
  }
  CHECK(after[layer].choices[2].kept_bytes == before[layer].choices[2].kept_bytes);
  after[layer] = before[layer];
  CHECK(after == before);
}

TEST_CASE("a layer without work takes what was measured for each token") {
  auto const reference = batch_of(8, 2, 1024);
  auto const modeled = omnibal::layer_costs(pair(), reference);
  auto const kinds = layer_kinds(pair());
  auto const embedding =
      static_cast<std::size_t>(std::find(kinds.begin(), kinds.end(), "embedding") - kinds.begin());
  REQUIRE(device(modeled[embedding].forward) == 0);
  measured_layers measured(modeled.size());
  measured[embedding] = measured_layer{.forward_nanoseconds = 4'000'000};
  layer_profile const profile(measured, reference, modeled, device);
  auto const batch = batch_of(0, 1, 512);
  auto costs = omnibal::layer_costs(pair(), batch);
  profile.correct(batch, costs);
  CHECK(device(costs[embedding].forward) == 1'000'000);
  CHECK(device(costs[embedding].backward) == 0);
}

TEST_CASE("nothing measured corrects nothing") {
  auto const batch = batch_of(2, 2, 300);
  auto const before = omnibal::layer_costs(pair(), batch);
  auto after = before;
  layer_profile().correct(batch, after);
  CHECK(after == before);
}

TEST_CASE("a device reaches what the measured layers of a part reach") {
  temporary_directory const folder;
  auto const batch = batch_of(8, 2, 1024);
  auto const costs = omnibal::layer_costs(pair(), batch);
  // A second for a vision layer, two for a language layer; layers 1 to 24, and 27 on.
  auto const path = folder.write(
      "times.csv", "layer,forward_ms,backward_ms\n3,400,600\n40,1000,1000\n41,1,1999\n");
  CHECK(reached_flops(path, pair(), measured_part::tower, batch) ==
        Approx(static_cast<double>(costs[3].flops())).epsilon(1e-9));
  CHECK(reached_flops(path, pair(), measured_part::language, batch) ==
        Approx(static_cast<double>(costs[40].flops()) / 2).epsilon(1e-9));
  auto const tower_alone = folder.write("tower.csv", "layer,forward_ms,backward_ms\n3,400,600\n");
  CHECK_THROWS_WITH(
      reached_flops(tower_alone, pair(), measured_part::language, batch),
      Catch::Contains("has no times of layers of the language model, which are 26 to 59"));
}

TEST_CASE("files may have columns of bytes, which are refused where they are none") {
  temporary_directory const folder;
  auto const read = [&](std::string const& text) {
    return read_measured_layers(folder.write("times.csv", text), 4);
  };
  auto const layers =
      read("layer,kept_mb,forward_ms,state_mb,backward_ms\n0-1,1.5,1,7,2\n3,0,1,0,0\n");
  CHECK(layers[0] == measured_layer{1'000'000, 2'000'000, 1'500'000, 7'000'000});
  CHECK(layers[1] == layers[0]);
  CHECK(!layers[2]);
  CHECK(layers[3] == measured_layer{1'000'000, 0, 0, 0});
  CHECK(!read("layer,forward_ms,backward_ms,kept_mb\n0,1,2,3\n")[0]->state_bytes);
  CHECK_THROWS_WITH(read("layer,forward_ms,backward_ms,kept_mb\n0,1,2,much\n"),
                    Catch::Contains("field \"kept_mb\" is \"much\", must be a decimal number of "
                                    "megabytes from 0 to 10^9"));
}
