// SPDX-License-Identifier: Apache-2.0
/// \file
/// The tables and pictures of docs/evidence/study.md about hierarchical balance packing (HBP; Yao
/// et al., NeurIPS 2025). All times come from cost models.

#include "models/machine_file.hpp"
#include "models/model_file.hpp"
#include "pictures/bars.hpp"
#include "pictures/svg.hpp"
#include "plans/long_context_plans.hpp"
#include "readers/long_context_mix.hpp"
#include "reports/study_sections.hpp"
#include "reports/table.hpp"

#include <omnibal/cost/device_model.hpp>
#include <omnibal/cost/layered_model.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace examples;

constexpr std::uint64_t seed = 1024;

/// What is trained on how many ranks.
struct setting {
  std::string model = "llama3-8b";
  std::int64_t ranks = 32;
  std::int64_t longest = 131'072;
  std::int64_t pack_milliseconds = 300;
  /// GB between the ranks that share a pack, per second.
  std::int64_t link = 100;
};

/// Levels by the published rule, and by the least time of an epoch.
struct chosen_levels {
  omnibal::level_selection published;
  omnibal::level_selection least;
};

/// Samples, and the profile and the search of a setting.
class study {
 public:
  study(setting const& of, dataset const& data)
      : data_(data), machine_(find_machine("a100-80gb")), setting_(of) {
    auto const model = find_model(of.model, model_parts::language);
    profile_ = sharded_profile(*model.language, machine_, of.ranks);
    profile_.pack_overhead_nanoseconds = 1'000'000 * of.pack_milliseconds;
    profile_.link_bytes_per_second = 1'000'000'000 * of.link;
    search_ = level_search_of(profile_, machine_);
    std::erase_if(search_.lengths, [&](std::int64_t length) { return length > of.longest; });
    levels_ = {omnibal::select_levels(profile_, search_),
               omnibal::select_levels(profile_, search_, data.samples, &sample::tokens)};
  }

  [[nodiscard]] chosen_levels const& levels() const { return levels_; }
  [[nodiscard]] bool fits() const {
    return levels_.published.status == omnibal::solve_status::solved;
  }
  /// One level, the longest.
  [[nodiscard]] std::vector<omnibal::packing_level> plain() const {
    return {levels_.published.levels.back()};
  }
  [[nodiscard]] long_context_plan plan(std::vector<omnibal::packing_level> const& levels,
                                       pack_kind packs, step_order order) const {
    return make_plan({"", levels, packs, order}, data_, {profile_}, seed);
  }
  [[nodiscard]] double days(long_context_plan const& plan) const {
    return plan.epoch_seconds * static_cast<double>(setting_.ranks) / 86400;
  }

 private:
  dataset const& data_;
  machine_description machine_;
  setting setting_;
  omnibal::language_profile profile_;
  omnibal::level_search search_;
  chosen_levels levels_;
};

/// 131072 as 128K.
std::string in_thousands(std::int64_t tokens) { return std::to_string(tokens / 1024) + "K"; }

/// `16K on 1, 128K on 8`.
std::string text_of(std::vector<omnibal::packing_level> const& levels) {
  std::string result;
  for (omnibal::packing_level const& level : levels) {
    if (!result.empty()) result += ", ";
    result += in_thousands(level.length) + " on " + std::to_string(level.sequence);
  }
  return result;
}

/// The rows of an ablation: how packs and steps are made.
struct way {
  std::string_view name;
  pack_kind packs;
  step_order order;
  enum class of_levels { one, published, least } levels;
};

constexpr std::array ways{
    way{"random: samples as they come", pack_kind::as_drawn, step_order::random,
        way::of_levels::one},
    way{"sorted by length", pack_kind::by_length, step_order::by_attention, way::of_levels::one},
    way{"first fit, shuffled (FFS)", pack_kind::first_fit, step_order::random, way::of_levels::one},
    way{"shortest pack first (SPFHP)", pack_kind::histogram, step_order::random,
        way::of_levels::one},
    way{"ISF, steps sorted by attention", pack_kind::random_groups, step_order::by_attention,
        way::of_levels::one},
    way{"ISF: plain packing", pack_kind::random_groups, step_order::random, way::of_levels::one},
    way{"+ hierarchy", pack_kind::random_groups, step_order::random, way::of_levels::published},
    way{"+ balance: HBP as published", pack_kind::random_groups, step_order::by_attention,
        way::of_levels::published},
    way{"+ best fit", pack_kind::best_fit, step_order::by_attention, way::of_levels::published},
    way{"+ levels of least time", pack_kind::best_fit, step_order::by_attention,
        way::of_levels::least}};
constexpr std::size_t sorted_isf_row = 4;
constexpr std::size_t isf_row = 5;
constexpr std::size_t balance_row = 7;
constexpr std::size_t last_row = ways.size() - 1;

std::vector<omnibal::packing_level> levels_of(study const& of, way const& one) {
  switch (one.levels) {
    case way::of_levels::one: return of.plain();
    case way::of_levels::published: return of.levels().published.levels;
    case way::of_levels::least: break;
  }
  return of.levels().least.levels;
}

long_context_plan plan_of(study const& of, way const& one) {
  return of.plan(levels_of(of, one), one.packs, one.order);
}

struct published_row {
  double days;
  double balance;
  double communication;
};

/// Of the paper's table for an 8B model, in the order of `ways` from its plain packing on.
constexpr std::array<published_row, 3> published_8b{
    {{5.22, 0.506, 1}, {4.51, 0.173, 0.173}, {3.73, 0.002, 0.173}}};

void print_ablation(std::ostream& out, length_mix mix) {
  dataset const data = long_context_mix(mix, 1'000'000, seed);
  study const of({}, data);
  // Its lengths are nearer to those of two sources.
  bool const has_paper = mix == length_mix::two_sources;
  std::vector<std::string> header{"Llama 3 8B, 32 ranks",
                                  "packs",
                                  "steps",
                                  "DBR",
                                  "ABR",
                                  "weighed",
                                  "CR",
                                  "PR",
                                  "GPU days",
                                  "of ISF"};
  if (has_paper) {
    header.insert(header.end(), {"paper: GPU days", "paper: of ISF", "paper: ABR, CR"});
  }
  table rows(header);
  double isf_days = 0;
  std::vector<std::pair<way, long_context_plan>> plans;
  for (way const& one : ways) {
    plans.emplace_back(one, plan_of(of, one));
    if (plans.size() == isf_row + 1) isf_days = of.days(plans.back().second);
  }
  for (std::size_t row = 0; row != plans.size(); ++row) {
    auto const& [one, plan] = plans[row];
    std::vector<std::string> cells{std::string(one.name),
                                   counted(plan.packed.groups.size()),
                                   counted(plan.step_count),
                                   fixed(plan.figures.data_balance, 3),
                                   fixed(plan.figures.attention_balance, 4),
                                   fixed(plan.weighed_attention_balance, 4),
                                   fixed(plan.figures.communication_ratio, 3),
                                   fixed(plan.figures.pad_ratio, 3),
                                   fixed(of.days(plan), 2),
                                   fixed(of.days(plan) / isf_days, 3)};
    bool const is_told = row >= isf_row && row < isf_row + published_8b.size();
    if (has_paper && is_told) {
      published_row const& paper = published_8b[row - isf_row];
      cells.insert(cells.end(), {fixed(paper.days, 2), fixed(paper.days / published_8b[0].days, 3),
                                 fixed(paper.balance, 3) + ", " + fixed(paper.communication, 3)});
    } else if (has_paper) {
      cells.insert(cells.end(), {"-", "-", "-"});
    }
    rows.add(cells);
  }
  rows.print_markdown(out);
}

void print_two_sources(std::ostream& out) { print_ablation(out, length_mix::two_sources); }
void print_broad(std::ostream& out) { print_ablation(out, length_mix::broad); }

/// ABR within each level, with steps dealt at random.
void print_levels(std::ostream& out) {
  table rows({"ABR, steps dealt at random", "ISF, 128K: packs of a step", "ABR",
              "16K: packs of a step", "ABR", "128K: packs of a step", "ABR",
              "all steps of the hierarchy"});
  for (length_mix const mix : {length_mix::two_sources, length_mix::broad}) {
    dataset const data = long_context_mix(mix, 1'000'000, seed);
    study const of({}, data);
    std::vector<std::string> cells{mix == length_mix::broad ? "broad" : "two sources"};
    auto const isf = plan_of(of, ways[isf_row]);
    auto const hierarchy = plan_of(of, ways[isf_row + 1]);
    for (long_context_plan const* const plan : {&isf, &hierarchy}) {
      for (std::size_t level = 0; level != plan->schedules.size(); ++level) {
        cells.push_back(counted(plan->schedules[level].ranks()));
        cells.push_back(fixed(plan->level_attention_balance[level], 3));
      }
    }
    cells.push_back(fixed(hierarchy.figures.attention_balance, 3));
    rows.add(cells);
  }
  rows.print_markdown(out);
}

/// A model of the paper, and how many times faster the paper trains it than by plain packing.
struct studied_model {
  std::string_view title;
  std::string_view name;
  std::int64_t ranks;
  std::int64_t longest;
  std::string_view paper;
};

constexpr std::array studied_models{
    studied_model{"Llama 3 8B", "llama3-8b", 32, 131'072, "1.40x"},
    studied_model{"Llama 3 70B", "llama3-70b", 256, 131'072, "1.42x"},
    studied_model{"DeepSeek-V2 236B", "deepseek-v2", 256, 32'768, "2.4x"}};

/// The fixed time of a pack of the 8B model, for a model with so many more parameters.
std::int64_t scaled_milliseconds(std::string_view model) {
  auto const parameters = [](std::string_view name) {
    auto const found = find_model(std::string(name), model_parts::language);
    return static_cast<double>(omnibal::count_parameters(*found.language).total);
  };
  return std::llround(300 * parameters(model) / parameters("llama3-8b"));
}

std::string gain_of(double from, double to) { return fixed(from / to, 2) + "x"; }

void print_models(std::ostream& out) {
  table rows({"", "fixed time of a pack", "levels by the published rule", "GPU days: ISF",
              "ISF, sorted", "hierarchy", "HBP", "ours", "ABR: ISF, HBP", "CR: HBP",
              "gain: ISF, sorted", "gain: HBP", "gain: ours", "gain: paper"});
  dataset const data = long_context_mix(length_mix::two_sources, 300'000, seed);
  for (studied_model const& model : studied_models) {
    std::vector<std::int64_t> times{0, 300};
    if (model.name != "llama3-8b") times.push_back(scaled_milliseconds(model.name));
    for (std::int64_t const milliseconds : times) {
      study const of({std::string(model.name), model.ranks, model.longest, milliseconds}, data);
      std::string const title = std::string(model.title) + ", " + std::to_string(model.ranks) +
                                " ranks, " + in_thousands(model.longest);
      std::string const time = fixed(1e-3 * static_cast<double>(milliseconds), 1) + " s";
      if (!of.fits()) {
        rows.add({title, time, "does not fit", "-", "-", "-", "-", "-", "-", "-", "-", "-", "-",
                  std::string(model.paper)});
        continue;
      }
      std::vector<long_context_plan> plans;
      for (std::size_t row = isf_row; row != ways.size(); ++row) {
        plans.push_back(plan_of(of, ways[row]));
      }
      auto const sorted = plan_of(of, ways[sorted_isf_row]);
      auto const& hbp = plans[balance_row - isf_row];
      rows.add({title, time, text_of(of.levels().published.levels), fixed(of.days(plans[0]), 2),
                fixed(of.days(sorted), 2), fixed(of.days(plans[1]), 2), fixed(of.days(hbp), 2),
                fixed(of.days(plans.back()), 2),
                fixed(plans[0].figures.attention_balance, 3) + ", " +
                    fixed(hbp.figures.attention_balance, 3),
                fixed(hbp.figures.communication_ratio, 3),
                gain_of(of.days(plans[0]), of.days(sorted)),
                gain_of(of.days(plans[0]), of.days(hbp)),
                gain_of(of.days(plans[0]), of.days(plans.back())), std::string(model.paper)});
    }
  }
  rows.print_markdown(out);
}

void print_overhead(std::ostream& out) {
  table rows({"fixed time of a pack", "levels by the published rule", "GPU days: ISF", "HBP",
              "of ISF", "levels of least time", "GPU days", "of ISF"});
  dataset const data = long_context_mix(length_mix::two_sources, 100'000, seed);
  for (std::int64_t const milliseconds : {0, 50, 100, 200, 300, 400, 500, 600}) {
    study const of({.pack_milliseconds = milliseconds}, data);
    auto const isf = plan_of(of, ways[isf_row]);
    auto const hbp = plan_of(of, ways[balance_row]);
    auto const least = plan_of(of, ways[last_row]);
    rows.add({fixed(1e-3 * static_cast<double>(milliseconds), 2) + " s",
              text_of(of.levels().published.levels), fixed(of.days(isf), 3), fixed(of.days(hbp), 3),
              fixed(of.days(hbp) / of.days(isf), 3), text_of(of.levels().least.levels),
              fixed(of.days(least), 3), fixed(of.days(least) / of.days(isf), 3)});
  }
  rows.print_markdown(out);
}

void print_links(std::ostream& out) {
  table rows({"between ranks that share a pack", "levels by the published rule", "GPU days: ISF",
              "ISF, sorted", "HBP", "HBP, of ISF", "HBP, of ISF sorted"});
  dataset const data = long_context_mix(length_mix::two_sources, 100'000, seed);
  for (std::int64_t const link : {10, 25, 50, 100, 200, 400}) {
    study const of({.link = link}, data);
    auto const isf = plan_of(of, ways[isf_row]);
    auto const sorted = plan_of(of, ways[sorted_isf_row]);
    auto const hbp = plan_of(of, ways[balance_row]);
    rows.add({std::to_string(link) + " GB/s", text_of(of.levels().published.levels),
              fixed(of.days(isf), 3), fixed(of.days(sorted), 3), fixed(of.days(hbp), 3),
              fixed(of.days(hbp) / of.days(isf), 3), fixed(of.days(hbp) / of.days(sorted), 3)});
  }
  rows.print_markdown(out);
}

void print_ranks(std::ostream& out) {
  constexpr std::array<std::size_t, 3> sample_counts{10'000, 100'000, 1'000'000};
  table rows({"samples, mix", "ranks", "steps: ISF, HBP", "ABR: ISF", "hierarchy", "HBP",
              "GPU days: ISF", "of ISF: sorted", "hierarchy", "HBP", "best fit",
              "levels of least time"});
  for (std::size_t const samples : sample_counts) {
    for (length_mix const mix : {length_mix::two_sources, length_mix::broad}) {
      dataset const data = long_context_mix(mix, samples, seed);
      std::string const title =
          counted(samples) + (mix == length_mix::broad ? ", broad" : ", two sources");
      for (std::int64_t const ranks : {8, 32, 256}) {
        study const of({.ranks = ranks}, data);
        std::vector<long_context_plan> plans;
        for (std::size_t row = isf_row; row != ways.size(); ++row) {
          plans.push_back(plan_of(of, ways[row]));
        }
        auto const share = [&](std::size_t row) {
          return fixed(of.days(plans[row]) / of.days(plans[0]), 3);
        };
        auto const sorted = plan_of(of, ways[sorted_isf_row]);
        rows.add({title, counted(static_cast<std::uint64_t>(ranks)),
                  counted(plans[0].step_count) + ", " + counted(plans[2].step_count),
                  fixed(plans[0].figures.attention_balance, 3),
                  fixed(plans[1].figures.attention_balance, 3),
                  fixed(plans[2].figures.attention_balance, 3), fixed(of.days(plans[0]), 3),
                  fixed(of.days(sorted) / of.days(plans[0]), 3), share(1), share(2), share(3),
                  share(4)});
      }
    }
  }
  rows.print_markdown(out);
}

/// Time of an epoch over that of plain packing, the paper's beside ours.
void draw_ablation(std::ostream& out) {
  bars content{
      .title = "Llama 3 8B on 32 ranks: GPU days, in parts of those of plain packing",
      .y_title = "of ISF",
      .kinds = {{"paper, 8B", colors::orange}, {"two sources", colors::blue}, {"broad", "#009E73"}},
      .groups = {},
      .digits = 2,
      .gap = "-"};
  std::vector<std::vector<double>> shares;
  for (length_mix const mix : {length_mix::two_sources, length_mix::broad}) {
    dataset const data = long_context_mix(mix, 1'000'000, seed);
    study const of({}, data);
    auto& of_mix = shares.emplace_back();
    double const isf = of.days(plan_of(of, ways[isf_row]));
    for (way const& one : ways) of_mix.push_back(of.days(plan_of(of, one)) / isf);
  }
  constexpr std::array labels{"random", "by length",   "FFS",       "SPFHP",     "ISF, sorted",
                              "ISF",    "+ hierarchy", "+ balance", "+ best fit"};
  for (std::size_t row = 0; row != labels.size(); ++row) {
    bool const is_told = row >= isf_row && row < isf_row + published_8b.size();
    double const paper = is_told ? published_8b[row - isf_row].days / published_8b[0].days : NAN;
    content.groups.push_back({labels[row], {paper, shares[0][row], shares[1][row]}});
  }
  constexpr double width = 1160;
  constexpr double height = 400;
  svg_drawing drawing;
  draw(drawing, {20, 12, width - 40, height - 20}, bar_chart(content));
  drawing.write(out, width, height, "Hierarchical balance packing, part by part",
                "GPU days of an epoch in parts of those of plain packing: the paper's, and those "
                "of two mixtures of lengths.");
}

constexpr study_section sections[]{{"models", print_models},     {"two-sources", print_two_sources},
                                   {"broad", print_broad},       {"levels", print_levels},
                                   {"overhead", print_overhead}, {"links", print_links},
                                   {"ranks", print_ranks},       {"ablation", draw_ablation}};

}  // namespace

int main(int count, char** words) { return print_section("study_hbp", sections, count, words); }
