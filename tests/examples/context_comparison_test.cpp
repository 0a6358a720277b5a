// SPDX-License-Identifier: Apache-2.0
#include "context_comparison.hpp"

#include "context_model.hpp"
#include "context_step_picture.hpp"
#include "long_context_mix.hpp"
#include "well_formed.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <catch.hpp>

namespace {

using namespace examples;

context_setting setting_of(std::uint32_t ranks, std::uint64_t samples) {
  context_setting setting{.ranks_per_node = 8, .size = {.samples = samples}, .seed = 5};
  setting.step.ranks = ranks;
  setting.step.cost = context_cost_of(known_shape("llama3-8b"), {ranks, 8});
  setting.step.options.capacity = 16'384;
  return setting;
}

context_comparison compare(dataset const& data, context_setting const& setting) {
  progress hidden(visibility::hidden);
  return compare_context(data, setting, hidden);
}

dataset of_lengths(std::vector<std::int64_t> const& lengths) {
  dataset data;
  for (std::int64_t const length : lengths) data.samples.push_back({0, length});
  return data;
}

context_epoch const& epoch_of(context_comparison const& comparison, std::string_view stem) {
  auto const found = std::ranges::find(comparison.epochs, stem, &context_epoch::stem);
  REQUIRE(found != comparison.epochs.end());
  return *found;
}

/// When each rank is busy and what it holds, written down rank by rank.
struct rank_clock {
  double seconds = 0;
  double waiting = 0;
  std::int64_t max_tokens = 0;
  std::vector<std::uint32_t> seen;

  void run(dataset const& data, context_setting const& setting, context_epoch const& epoch) {
    for (std::size_t k = 0; k != epoch.plans.size(); ++k) {
      std::vector<std::uint32_t> own;
      for (std::size_t m = 0; m != epoch.plans[k].micro_steps(); ++m) {
        run_micro_step(data, setting, epoch, k, m, own);
      }
      std::vector<std::uint32_t> expected(epoch.steps[k].begin(), epoch.steps[k].end());
      std::ranges::sort(expected);
      std::ranges::sort(own);
      CHECK(own == expected);
      seen.insert(seen.end(), own.begin(), own.end());
    }
    std::ranges::sort(seen);
  }

 private:
  void run_micro_step(dataset const& data, context_setting const& setting,
                      context_epoch const& epoch, std::size_t k, std::size_t m,
                      std::vector<std::uint32_t>& own) {
    context_step const& step = setting.step;
    omnibal::context_plan const& plan = epoch.plans[k];
    std::vector<double> busy(step.ranks, 0);
    std::vector<bool> taken(step.ranks, false);
    for (std::size_t g = plan.micro_step_offsets[m]; g != plan.micro_step_offsets[m + 1]; ++g) {
      auto const [first, degree, time] = plan.groups[g];
      omnibal::degree_time const& cost = step.cost.degrees[degree - 1];
      double expected = cost.fixed;
      std::int64_t held = 0;
      for (std::uint32_t const item : plan.samples[g]) {
        std::uint32_t const sample = epoch.steps[k][item];
        std::int64_t const length = data.samples[sample].tokens;
        auto const tokens = static_cast<double>(length);
        expected += cost.linear * tokens + cost.quadratic * tokens * tokens;
        held += length / degree + (length % degree != 0);
        own.push_back(sample);
      }
      CHECK(time == Approx(expected));
      CHECK(held <= step.options.capacity);
      max_tokens = std::max(max_tokens, held);
      for (std::uint32_t rank = first; rank != first + degree; ++rank) {
        CHECK(!taken.at(rank));
        taken[rank] = true;
        busy[rank] = expected;
      }
    }
    double const longest = *std::ranges::max_element(busy);
    seconds += step.cost.micro_step + longest;
    for (double const time : busy) waiting += (longest - time) / step.ranks;
  }
};

bool may_have(context_setting const& setting, std::string_view stem, std::uint32_t degree) {
  if (stem == "groups_powers_of_two") return (degree & (degree - 1)) == 0;
  if (stem == "groups_in_nodes") {
    return degree <= setting.ranks_per_node || degree % setting.ranks_per_node == 0;
  }
  return true;
}

double area_of(std::string const& svg, std::string_view color) {
  double area = 0;
  std::istringstream lines(svg);
  for (std::string line; std::getline(lines, line);) {
    bool const is_box = line.starts_with("<rect x=") && line.find(color) != std::string::npos;
    if (!is_box) continue;
    auto const number = [&line](std::string const& name) {
      return std::stod(line.substr(line.find(" " + name + "=\"") + name.size() + 3));
    };
    // Not those of the legend.
    if (number("y") > 80) area += number("width") * number("height");
  }
  return area;
}

std::string picture_of(dataset const& data, context_setting const& setting,
                       context_comparison const& comparison) {
  std::ostringstream out;
  write_step_picture(data, setting, comparison, out);
  return out.str();
}

}  // namespace

TEST_CASE("every way runs each sample once, in the memory, in the time that it says") {
  for (length_mix const mix : {length_mix::two_sources, length_mix::broad}) {
    for (std::uint32_t const ranks : {16u, 48u}) {
      dataset const data = long_context_mix(mix, 1100, 3);
      auto const setting = setting_of(ranks, 256);
      auto const comparison = compare(data, setting);
      CHECK(comparison.oversized.empty());
      CHECK(comparison.epochs.size() == 7);
      for (context_epoch const& epoch : comparison.epochs) {
        INFO(epoch.name);
        REQUIRE(epoch.misfit.empty());
        CHECK(epoch.steps.size() == 5);
        rank_clock clock;
        clock.run(data, setting, epoch);
        std::vector<std::uint32_t> all(data.samples.size());
        std::iota(all.begin(), all.end(), 0u);
        CHECK(clock.seen == all);
        CHECK(epoch.seconds == Approx(clock.seconds));
        CHECK(epoch.waiting == Approx(clock.waiting / clock.seconds).margin(1e-12));
        CHECK(epoch.max_tokens == clock.max_tokens);
        std::uint64_t micro_steps = 0;
        for (auto const& plan : epoch.plans) micro_steps += plan.micro_steps();
        CHECK(epoch.micro_steps == micro_steps);
        for (auto const& plan : epoch.plans) {
          for (auto const& group : plan.groups) {
            CHECK(may_have(setting, epoch.stem, group.degree));
          }
        }
        // The same samples in a step, so the same bound.
        if (epoch.stem != "like_lengths") CHECK(epoch.seconds >= comparison.lower_bound);
      }
    }
  }
}

TEST_CASE("each way is at least as good as those that it contains") {
  for (length_mix const mix : {length_mix::two_sources, length_mix::broad}) {
    auto const comparison = compare(long_context_mix(mix, 1500, 9), setting_of(64, 500));
    context_epoch const& one = epoch_of(comparison, "one_degree");
    context_epoch const& best = epoch_of(comparison, "best_degree");
    context_epoch const& levels = epoch_of(comparison, "levels");
    for (std::size_t k = 0; k != one.plans.size(); ++k) {
      CHECK(best.plans[k].makespan <= one.plans[k].makespan);
      CHECK(levels.plans[k].makespan <= best.plans[k].makespan);
      auto const& groups = one.plans[k].groups;
      CHECK(std::ranges::all_of(
          groups, [&](auto const& group) { return group.degree == groups[0].degree; }));
    }
  }
}

TEST_CASE("one degree is the best of all that divide the ranks") {
  dataset const data = long_context_mix(length_mix::broad, 900, 2);
  auto const setting = setting_of(24, 300);
  auto const comparison = compare(data, setting);
  context_epoch const& one = epoch_of(comparison, "one_degree");
  double least = std::numeric_limits<double>::infinity();
  for (std::uint32_t const degree : {1u, 2u, 3u, 4u, 6u, 8u, 12u, 24u}) {
    omnibal::context_groups_workspace workspace;
    double seconds = 0;
    bool fits = true;
    for (auto const samples : one.steps) {
      std::vector<std::int64_t> lengths;
      for (std::uint32_t const sample : samples) lengths.push_back(data.samples[sample].tokens);
      auto const plan = one_degree(setting.step, lengths, degree, workspace);
      fits = fits && plan.status == omnibal::solve_status::solved;
      seconds += plan.makespan;
    }
    if (fits) least = std::min(least, seconds);
  }
  CHECK(one.seconds == Approx(least));
}

TEST_CASE("levels have micro-steps of their own where that is shorter") {
  // Four documents for two ranks each beside eight short ones, on four ranks; a group of two ranks
  // takes as long as one rank, so that short ones lose on it.
  context_setting setting{.ranks_per_node = 4, .size = {.samples = 12}};
  setting.step.ranks = 4;
  setting.step.cost = {.degrees = {{0, 1, 0}, {0, 1, 0}, {0, 1, 0}, {0, 1, 0}}, .micro_step = 1};
  setting.step.options.capacity = 20;
  auto const comparison =
      compare(of_lengths({40, 40, 40, 40, 10, 10, 10, 10, 10, 10, 10, 10}), setting);
  // Two micro-steps of two documents each, and one of four ranks with two short ones each.
  context_epoch const& levels = epoch_of(comparison, "levels");
  CHECK(levels.seconds == Approx(2 * 41 + 21));
  CHECK(levels.micro_steps == 3);
  CHECK(levels.waiting == 0.0);
  // With two ranks for all: two micro-steps of two documents, one with four short ones each.
  context_epoch const& one = epoch_of(comparison, "one_degree");
  CHECK(one.seconds == Approx(2 * 41 + 41));
  // All samples on one rank each would take 240 of 4 * 123 seconds; what groups take beyond, in
  // the mean of a rank: 20 for each document's micro-step, 20 for the short ones.
  CHECK(one.sharing * one.seconds == Approx(60));
  CHECK(levels.sharing * levels.seconds == Approx(40));
}

TEST_CASE("levels are the best of all ways to part the octaves") {
  auto const setting = setting_of(16, 0);
  for (std::uint64_t const seed : {1u, 2u, 3u, 4u}) {
    context_step step = setting.step;
    for (sample const& one : long_context_mix(length_mix::broad, 150, seed).samples) {
      step.lengths.push_back(one.tokens);
    }
    omnibal::context_groups_workspace workspace;
    // Above an eighth of the memory, a quarter, ...; bit k of a mask begins a level above octave k.
    std::vector<std::int64_t> const ends{2048, 4096, 8192, 16'384, 32'768, 65'536, 131'072};
    double least = std::numeric_limits<double>::infinity();
    for (unsigned mask = 0; mask != 1u << (ends.size() - 1); ++mask) {
      double seconds = 0;
      std::int64_t above = -1;
      for (std::size_t k = 0; k != ends.size(); ++k) {
        if (k + 1 != ends.size() && (mask >> k & 1) == 0) continue;
        std::vector<std::int64_t> level;
        for (std::int64_t const length : step.lengths) {
          if (length > above && length <= ends[k]) level.push_back(length);
        }
        seconds += best_degree(step, level, workspace).makespan;
        above = ends[k];
      }
      least = std::min(least, seconds);
    }
    auto const plan = best_levels(step, workspace);
    // The order of equal samples differs, and a heuristic plan with it a little.
    CHECK(plan.makespan == Approx(least).epsilon(1e-3));
    CHECK(plan.samples.item_count() == step.lengths.size());
  }
}

TEST_CASE("steps have a number of samples, or as many as reach a number of tokens") {
  dataset const data = long_context_mix(length_mix::two_sources, 1000, 4);
  auto setting = setting_of(16, 0);
  setting.size = {.tokens = 100'000};
  auto const comparison = compare(data, setting);
  auto const& steps = epoch_of(comparison, "groups").steps;
  REQUIRE(steps.size() > 3);
  for (std::size_t k = 0; k != steps.size(); ++k) {
    std::int64_t tokens = 0;
    for (std::uint32_t const sample : steps[k]) tokens += data.samples[sample].tokens;
    CHECK((tokens >= 100'000 || k + 1 == steps.size()));
    CHECK(tokens - data.samples[steps[k].back()].tokens < 100'000);
  }
  // Those of like lengths are other steps of the same samples.
  auto const& alike = epoch_of(comparison, "like_lengths").steps;
  CHECK(data.samples[alike[0][0]].tokens >= data.samples[alike[alike.size() - 1].back()].tokens);
  CHECK(compare(data, setting_of(16, 1000)).epochs[0].steps.size() == 1);
  CHECK(compare(data, setting_of(16, 999)).epochs[0].steps.size() == 2);
}

TEST_CASE(
    "samples that fit on no allowed degree are left out, and a way without them has no plan") {
  auto setting = setting_of(24, 8);
  setting.step.options.degrees = {1, 2, 4};
  dataset const data = of_lengths({100, 65'536, 65'537, 200, std::int64_t{1} << 40});
  auto const limited = compare(data, setting);
  CHECK(limited.oversized == std::vector<std::uint32_t>{2, 4});
  for (context_epoch const& epoch : limited.epochs) {
    REQUIRE(epoch.plans.size() == 1);
    CHECK(epoch.steps.item_count() == 3);
    for (auto const& group : epoch.plans[0].groups) {
      CHECK((group.degree == 1 || group.degree == 2 || group.degree == 4));
    }
  }
  CHECK_THROWS_AS(compare(of_lengths({70'000}), setting), std::runtime_error);

  // More than 16 ranks hold it, which no power of two up to 24 is.
  setting.step.options.degrees.clear();
  auto const whole = compare(of_lengths({100, 20 * 16'384}), setting);
  CHECK(whole.oversized.empty());
  CHECK(epoch_of(whole, "groups_powers_of_two").misfit ==
        "a sample of 327,680 tokens needs 20 ranks");
  CHECK(epoch_of(whole, "groups_powers_of_two").plans.empty());
  CHECK(epoch_of(whole, "groups").misfit.empty());
  CHECK(epoch_of(whole, "groups_in_nodes").plans[0].groups[0].degree == 24);
  // Without a degree that is allowed, a way is not there.
  setting.step.options.degrees = {12};
  CHECK(compare(of_lengths({100}), setting).epochs.size() == 5);
}

TEST_CASE("the picture of a step shows how long ranks wait") {
  dataset const data = long_context_mix(length_mix::two_sources, 600, 11);
  auto setting = setting_of(16, 300);
  auto const comparison = compare(data, setting);
  std::string const text = picture_of(data, setting, comparison);
  CHECK(xml_complaint(text) == "");
  CHECK(text == picture_of(data, setting, comparison));
  for (std::string_view const part : {"300 samples in one step on 16 ranks", "one degree, ",
                                      "levels", "groups, any degree", "waiting"}) {
    CHECK(text.find(part) != std::string::npos);
  }
  // Areas are ranks times seconds: 16 rows of 16 pixels, 866 pixels for the longest plan.
  double longest = 0;
  double waiting_time = 0;
  double sharing_sum = 0;
  for (std::string_view const stem : {"one_degree", "levels", "groups"}) {
    context_epoch const& epoch = epoch_of(comparison, stem);
    context_step step = setting.step;
    for (std::uint32_t const sample : epoch.steps[0]) {
      step.lengths.push_back(data.samples[sample].tokens);
    }
    auto const figures = figures_of(epoch.plans[0], step);
    longest = std::max(longest, figures.seconds);
    waiting_time += figures.waiting;
    sharing_sum += figures.sharing;
  }
  double const second = 866 * 256 / longest;
  CHECK(area_of(text, "#E69F00") == Approx(waiting_time * second).epsilon(0.06).margin(100));
  CHECK(area_of(text, "#B9B9B9") == Approx(sharing_sum * second).epsilon(0.06).margin(100));
}

TEST_CASE("the picture of a step stays small, whatever the step") {
  for (std::uint32_t const ranks : {1u, 7u, 1024u}) {
    dataset const data = long_context_mix(length_mix::broad, 4096, 1);
    auto setting = setting_of(ranks, 4096);
    setting.ranks_per_node = ranks;
    setting.step.options.capacity = 131'072;
    std::string const text = picture_of(data, setting, compare(data, setting));
    CHECK(xml_complaint(text) == "");
    CHECK(text.size() < 200'000);
  }
  // Where a way has no plan it is not drawn.
  auto setting = setting_of(8, 1);
  std::string const text = picture_of(of_lengths({0}), setting, compare(of_lengths({0}), setting));
  CHECK(xml_complaint(text) == "");
}
