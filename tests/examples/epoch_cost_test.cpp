// SPDX-License-Identifier: Apache-2.0
#include "epoch_cost.hpp"

#include "pack_samples.hpp"
#include "synthetic.hpp"

#include <omnibal/group_loads.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch.hpp>

namespace {

examples::dataset texts_of(std::vector<std::int64_t> const& lengths) {
  examples::dataset data;
  for (std::int64_t const length : lengths) data.samples.push_back({0, length});
  data.sources.push_back({"lengths", lengths.size()});
  return data;
}

}  // namespace

TEST_CASE("the time of an epoch is what samples, padding and waiting take") {
  examples::pack_options options;
  options.ranks = 2;
  options.times = {.ms_per_tile = 1000, .ms_per_token = 1};
  options.capacity = {10, 1000};
  examples::measured_batches batches;
  batches.loads = {{1, 1000}, {0, 500}, {0, 1000}};
  batches.fill = {{0.1, 0.5}, {0, 0.5}, {0, 1}};
  // Steps of 2 s, 0.5 s less; of 1 s, one rank idle.
  auto const cost =
      examples::cost_of_epoch(std::array<std::uint32_t, 3>{0, 1, 2}, batches, options);
  CHECK(cost.useful == Approx(1.5 + 0.5 + 1.0));
  CHECK(cost.padding == Approx(0.5));
  CHECK(cost.waiting == Approx(1.5 + 1.0));
  CHECK(cost.total() == Approx(2 * (2.0 + 1.0)));

  // A batch that runs twice is useful once.
  auto const twice = examples::cost_of_epoch(std::array<std::uint32_t, 2>{2, 2}, batches, options);
  CHECK(twice.useful == Approx(1.0));
  CHECK(twice.padding == Approx(1.0));
  CHECK(twice.waiting == Approx(0.0));

  CHECK(examples::cost_of_epoch({}, {}, options).total() == 0.0);
}

TEST_CASE("the report says if times are guesses and if there is nothing to gain") {
  examples::pack_options options;
  options.kind = examples::sample_kind::text;
  auto const report = [&](double shuffled) {
    std::ostringstream out;
    examples::print_gain(
        options,
        {.padded = {.useful = 3}, .concatenated = {.useful = shuffled}, .planned = {.useful = 1}},
        out);
    return out.str();
  };
  CHECK_THAT(report(1.2),
             Catch::Contains("1.20 times as fast as micro-batches filled in shuffled"));
  CHECK_THAT(report(1.2), Catch::Contains("guesses for 8 ranks"));
  CHECK_THAT(report(1.02), Catch::Contains("No gain to expect") && Catch::Contains("(1.02 times)"));
  options.times.is_given = true;
  CHECK_THAT(report(1.2), Catch::Contains("estimates for 8 ranks") && !Catch::Contains("guesses"));
}

TEST_CASE("batches filled in shuffled order stay below the capacity and hold each sample once") {
  auto const data = texts_of({4000, 30, 30, 700, 2500, 900, 1, 4096, 60, 60, 60, 1200});
  examples::pack_options options;
  options.typed_capacity = {4096};
  examples::settle(options, data.kind);
  auto const packed = examples::pack_samples(data, options);
  double batches = 0;
  for (auto const layout : {examples::batch_layout::padded, examples::batch_layout::concatenated}) {
    auto const filled = examples::measure_filled(data, options, packed, layout);
    CHECK(examples::count_above(filled.loads, options.capacity) == 0);
    double tokens = 0;
    for (auto const& fill : filled.fill) tokens += fill[1] * 4096;
    CHECK(tokens == Approx(13637));
    // Padding takes room, so that fewer samples fit into a batch.
    CHECK((batches == 0 || static_cast<double>(filled.loads.size()) < batches));
    batches = static_cast<double>(filled.loads.size());
  }
}

TEST_CASE("text is packed by tokens alone") {
  std::vector<std::int64_t> lengths;
  for (std::int64_t i = 0; i != 3000; ++i) lengths.push_back(1 + i * i % 4096);
  auto const data = texts_of(lengths);
  examples::pack_options options;
  options.typed_capacity = {4096};
  examples::settle(options, data.kind);
  CHECK(options.capacity == omnibal::resources<2>{1, 4096});
  for (auto const packer : {examples::packer_kind::best_packing, examples::packer_kind::isf,
                            examples::packer_kind::next_fit}) {
    options.packer = packer;
    auto const result = examples::pack_samples(data, options);
    CHECK(result.groups.item_count() == lengths.size());
    for (auto const& load : omnibal::group_loads(result.groups.view(), data.samples,
                                                 examples::packed_demand(options))) {
      CHECK(load[1] <= 4096);
    }
  }
}

TEST_CASE("without a capacity one is chosen for what the samples have") {
  examples::pack_options options;
  examples::settle(options, examples::sample_kind::images_and_text);
  CHECK(options.target_batch == 4.0);
  auto const data = examples::synthetic_lengths(3000, 1);
  auto const choice = examples::choose_capacity(data, options);
  CHECK(choice.samples_per_group >= 4.0);
  CHECK(choice.samples_per_group <= 5.0);

  examples::pack_options of_text;
  examples::settle(of_text, examples::sample_kind::text);
  CHECK(of_text.target_batch == 0.0);
  std::vector<std::int64_t> lengths(2000, 1000);
  lengths[7] = 70'000;
  CHECK(examples::context_length(texts_of(lengths), of_text) == 1024);
  lengths.assign(10, 1024);
  CHECK(examples::context_length(texts_of(lengths), of_text) == 1024);
  lengths.assign(10, 0);
  CHECK(examples::context_length(texts_of(lengths), of_text) == 1);
}

TEST_CASE("a capacity that more than half of the samples exceed is an error") {
  auto const data = texts_of({10, 200, 300, 400});
  examples::pack_options options;
  options.typed_capacity = {100};
  examples::settle(options, data.kind);
  auto const fails = [&] {
    try {
      examples::check_oversized(data, options, examples::pack_samples(data, options));
      return std::string();
    } catch (std::runtime_error const& error) {
      return std::string(error.what());
    }
  };
  CHECK(fails().find("3 of 4 samples exceed the capacity of 100 tokens") != std::string::npos);
  options.typed_capacity = {200};
  examples::settle(options, data.kind);
  CHECK(fails().empty());
}
