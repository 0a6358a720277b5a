// SPDX-License-Identifier: Apache-2.0
#include "bars.hpp"
#include "long_context_mix.hpp"
#include "long_context_plans.hpp"
#include "machine_file.hpp"
#include "modality_mix.hpp"
#include "orchestrated_step.hpp"
#include "study_sections.hpp"
#include "table.hpp"
#include "well_formed.hpp"

#include <omnibal/cost/models.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <catch.hpp>

namespace {

using namespace examples;

constexpr step_batching unpadded{batching::unpadded, batching::unpadded, batching::unpadded};
constexpr step_batching all_padded{batching::padded, batching::padded, batching::padded};
constexpr step_batching convolved{batching::unpadded, batching::unpadded, batching::convolved};
constexpr step_batching sound_padded{batching::unpadded, batching::unpadded, batching::padded_all};

batch_measures batch_of(std::size_t ranks, std::size_t samples) {
  modality_costs const costs;
  batch_measures batch;
  for (std::size_t rank = 0; rank != ranks; ++rank) {
    batch.add_rank(draw_samples({.rank = rank, .samples = samples}), costs);
  }
  return batch;
}

/// The items of a phase, each as often as it is on a rank.
std::vector<std::uint32_t> items_of(omnibal::grouping const& parts) {
  std::vector<std::uint32_t> result(parts.items().begin(), parts.items().end());
  std::ranges::sort(result);
  return result;
}

std::size_t count_of(std::string_view text, std::string_view word) {
  std::size_t count = 0;
  for (std::size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) ++count;
  return count;
}

std::string drawn(chart const& content) {
  svg_drawing drawing;
  draw(drawing, {0, 0, 400, 300}, content);
  std::ostringstream out;
  drawing.write(out, 400, 300, "title", "description");
  return out.str();
}

}  // namespace

TEST_CASE("a table is one of Markdown too") {
  table rows({"", "a", "b"});
  rows.add({"first", "1", ""});
  rows.add_rule();
  rows.add({"second", "2", "3"});
  std::ostringstream out;
  rows.print_markdown(out);
  CHECK(out.str() == "| | a | b |\n|---|--:|--:|\n| first | 1 | |\n| second | 2 | 3 |\n");
}

TEST_CASE("curves have gaps where there is no value") {
  chart content{.title = "",
                .x = {.title = "x", .most = 5},
                .y = {.title = "y", .most = 3},
                .curves = {{.label = "one",
                            .color = colors::blue,
                            .curve = {{0, 1, 2, 3, 4, 5}, {1, 2, INFINITY, NAN, 3}}}}};
  std::string const two_lines = drawn(content);
  CHECK(xml_complaint(two_lines) == "");
  CHECK(count_of(two_lines, "<path") == 2);
  content.curves[0].style = curve_style::area;
  CHECK(count_of(drawn(content), "<path") == 4);
  content.curves[0].curve.heights.assign(5, NAN);
  CHECK(count_of(drawn(content), "<path") == 0);
}

TEST_CASE("bars have their heights above them, and a word where there is none") {
  bars const content{.title = "bars",
                     .y_title = "days",
                     .kinds = {{"paper", colors::orange}, {"ours", colors::blue}},
                     .groups = {{"one", {NAN, 2.25}}, {"two", {4, 1}}},
                     .digits = 2,
                     .gap = "not told"};
  std::string const text = drawn(bar_chart(content));
  CHECK(xml_complaint(text) == "");
  CHECK(count_of(text, "<path") == 3);
  for (std::string const word : {">not told<", ">2.25<", ">4.00<", ">1.00<", ">one<", ">two<"}) {
    CHECK(count_of(text, word) == 1);
  }
  CHECK(bar_chart(content).y.most >= 4.4);
}

TEST_CASE("a study prints the section that is named, and names them all where there is none") {
  constexpr study_section sections[]{{"one", [](std::ostream&) {}}, {"two", [](std::ostream&) {}}};
  char const* words[]{"program", "two", "three"};
  CHECK(print_section("program", sections, 2, words) == 0);
  CHECK(print_section("program", sections, 1, words) == 1);
  CHECK(print_section("program", sections, 3, words) == 1);
  words[1] = "four";
  CHECK(print_section("program", sections, 2, words) == 1);
}

TEST_CASE("packs as drawn and by length have every sample and wait as they should") {
  dataset const data = long_context_mix(length_mix::two_sources, 20'000, 7);
  auto const profile = sharded_profile(omnibal::llama3_8b, find_machine("a100-80gb"), 32);
  std::vector<omnibal::packing_level> const one{
      {.length = 131072, .sequence = 8, .checkpointed_layers = 4}};
  auto const plan = [&](pack_kind packs, step_order order) {
    auto made = make_plan({"", one, packs, order}, data, {profile}, 3);
    std::vector<std::uint32_t> const items = items_of(made.packed.groups);
    CHECK(items.size() == data.samples.size());
    CHECK(std::adjacent_find(items.begin(), items.end()) == items.end());
    return made;
  };
  auto const drawn_packs = plan(pack_kind::as_drawn, step_order::random);
  auto const sorted = plan(pack_kind::by_length, step_order::by_attention);
  auto const best = plan(pack_kind::best_fit, step_order::random);
  CHECK(best.packed.groups.size() <= drawn_packs.packed.groups.size());
  CHECK(sorted.figures.attention_balance < drawn_packs.figures.attention_balance / 2);
  // Samples of like lengths are together: no pack has a document and a conversation below the
  // lengths of another pack.
  std::size_t overlaps = 0;
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
  for (auto const pack : sorted.packed.groups) {
    auto const tokens = [&](std::uint32_t i) { return data.samples[i].tokens; };
    auto const [least, most] = std::ranges::minmax_element(pack, {}, tokens);
    ranges.emplace_back(tokens(*least), tokens(*most));
  }
  std::ranges::sort(ranges);
  for (std::size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i].first < ranges[i - 1].second) ++overlaps;
  }
  CHECK(overlaps == 0);
}

TEST_CASE("arrangements of a step have every item, and take what their slowest ranks take") {
  for (std::size_t const samples : {1u, 3u, 8u}) {
    batch_measures const batch = batch_of(16, samples);
    step_arrangement const home = at_home(batch);
    for (std::size_t phase = 0; phase != phase_count; ++phase) REQUIRE(home[phase].size() == 16);
    double const work = work_seconds(batch);
    step_time const before = time_of(batch, home, unpadded);
    double mean = 0;
    for (std::size_t phase = 0; phase != phase_count; ++phase) {
      mean += before.seconds[phase] * (1 - before.waiting[phase]);
    }
    CHECK(16 * mean == Approx(work));
    CHECK(time_of(batch, home, all_padded).total() >= before.total());
    for (auto const rule : {orchestration_rule::lpt, orchestration_rule::rebalance}) {
      for (step_batching const& how : {unpadded, all_padded, convolved, sound_padded}) {
        auto const plans = orchestrate_step(batch, how, rule, 8);
        step_arrangement const even = arrangement_of(plans);
        for (std::size_t phase = 0; phase != phase_count; ++phase) {
          CHECK(items_of(even[phase]) == items_of(home[phase]));
        }
        step_time const after = time_of(batch, even, how);
        CHECK(after.total() <= time_of(batch, home, how).total());
        CHECK(16 * after.total() >= work * (1 - 1e-9));
      }
    }
  }
}

TEST_CASE("convolutions are linear in the frames and padded, attention is quadratic") {
  modality_costs const costs;
  multimodal_sample const sample{
      .number = 0, .text_tokens = 10, .pieces = {{modality::sound, 1500}, {modality::sound, 500}}};
  batch_measures batch;
  batch.add_rank({sample}, costs);
  auto const& sound = batch.encoders[1];
  // Forward and backward at 400 TFLOP/s: 3 wide, 2 * 128 bands, then 1280 numbers.
  CHECK(sound.convolution_times[0] ==
        3 * 2 * 3 * 1280 * (256 + 1280) * std::int64_t{1500} / 400'000);
  CHECK(sound.convolution_times[0] == Approx(3 * sound.convolution_times[1]).margin(3));
  CHECK(sound.times[0] > 3 * sound.times[1]);
  CHECK(costs.convolution_time(modality::image, 5) == 0);
  auto const seconds = [&](batching how) {
    step_batching of_phases = unpadded;
    of_phases[2] = how;
    return 1e9 * time_of(batch, at_home(batch), of_phases).seconds[2];
  };
  auto const convolution = static_cast<double>(sound.convolution_times[0]);
  auto const longest = static_cast<double>(sound.times[0]);
  CHECK(seconds(batching::convolved) == Approx(seconds(batching::unpadded) + 2 * convolution));
  CHECK(seconds(batching::padded_all) == Approx(2 * (longest + convolution)));
}

TEST_CASE("what stays takes no time on the wire, and nodes take bytes off it") {
  batch_measures const batch = batch_of(16, 8);
  machine_description const machine = find_machine("h100-80gb");
  auto const aware = orchestrate_step(batch, unpadded, orchestration_rule::rebalance, 8);
  wire_time const one = wire_time_of(batch, aware, machine);
  double moved = static_cast<double>(aware.samples.moved_bytes());
  double across = static_cast<double>(aware.samples.moved_bytes_across_nodes());
  for (omnibal::encoder_routes const& routes : aware.encoders) {
    moved += static_cast<double>(routes.inputs.moved_bytes());
    across += static_cast<double>(routes.inputs.moved_bytes_across_nodes()) +
              2 * static_cast<double>(routes.outputs.moved_bytes_across_nodes());
  }
  CHECK(one.input_bytes == Approx(moved));
  CHECK(one.across_nodes == Approx(across));
  CHECK(one.seconds > 0);
  // Half the bandwidth, twice the time.
  machine_description slow = machine;
  slow.link_bytes /= 2;
  slow.node_link_bytes /= 2;
  CHECK(wire_time_of(batch, aware, slow).seconds == Approx(2 * one.seconds));
  // A rank alone sends nothing but its measures to itself.
  batch_measures const alone = batch_of(1, 8);
  auto const plans = orchestrate_step(alone, unpadded, orchestration_rule::lpt, 8);
  CHECK(wire_time_of(alone, plans, machine).input_bytes == 0);
  CHECK(wire_time_of(alone, plans, machine).output_bytes == 0);
}
