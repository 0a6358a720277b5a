// SPDX-License-Identifier: Apache-2.0
/// \file
/// Prints the tables of docs/evidence/study.md about OmniBal, one at a time: as published in the paper, as
/// published and computed here, and by this library. `study_omnibal SECTION`

#include "models/machine_file.hpp"
#include "models/model_file.hpp"
#include "pictures/bars.hpp"
#include "pictures/chart.hpp"
#include "pictures/pipeline_picture.hpp"
#include "pictures/svg.hpp"
#include "plans/published_plan.hpp"
#include "plans/vlm_cuts.hpp"
#include "plans/vlm_scenarios.hpp"
#include "plans/vlm_training.hpp"
#include "readers/dataset.hpp"
#include "readers/synthetic.hpp"
#include "reports/study_sections.hpp"
#include "reports/table.hpp"
#include "reports/vlm_exports.hpp"

#include <omnibal/cost/layered_model.hpp>
#include <omnibal/demand.hpp>
#include <omnibal/group_loads.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/metrics.hpp>
#include <omnibal/partition/neighbors.hpp>
#include <omnibal/partition/partition_minimax.hpp>
#include <omnibal/partition/search_cuts.hpp>
#include <omnibal/plan/pipeline_plan.hpp>
#include <omnibal/plan/plan_training.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/rng/fisher_yates.hpp>
#include <omnibal/solve_status.hpp>
#include <omnibal/steps.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <ostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace examples;

constexpr std::uint64_t usual_seed = 1024;
constexpr std::size_t sample_count = 32'768;
constexpr auto images_and_tokens = omnibal::demand_of(&sample::images, &sample::tokens);

using plan_type = omnibal::pipeline_plan<std::int64_t>;
using loads_type = std::vector<omnibal::resources<2>>;

model_description model_of_name(std::string const& name) {
  return find_model(name, model_parts::language);
}

vlm_scenario usual_scenario() {
  return scenario_on("as assumed", find_machine("a100-80gb-products"));
}

/// Both plans of a model for one scenario.
struct both_plans {
  planned_scenario ours;
  published_plan published;
};

both_plans plan_both(dataset const& data, std::string const& model, vlm_scenario const& scenario,
                     std::uint64_t seed = usual_seed) {
  auto ours = plan_scenario(data, scenario, model_of_name(model), seed);
  auto published = plan_as_published(ours, {}, seed);
  return {std::move(ours), std::move(published)};
}

bool is_solved(planned_scenario const& planned, std::size_t lever) {
  return planned.plan.levers[lever].plan.status == omnibal::solve_status::solved;
}

/// With a mark where a stage exceeds the memory, which the first levers do not look at.
std::string days_of(planned_scenario const& planned, std::size_t lever) {
  if (!is_solved(planned, lever)) return "does not fit";
  auto const& peaks = planned.plan.levers[lever].estimate.peak_bytes;
  bool const exceeds = *std::ranges::max_element(peaks) > planned.assumed.memory_bytes;
  return fixed(planned.gpu_days(lever), 1) + (exceeds ? " !" : "");
}

std::string gain_of(planned_scenario const& planned, std::size_t lever) {
  return is_solved(planned, lever)
             ? times_or_dash(planned.gpu_seconds(0), planned.gpu_seconds(lever))
             : "does not fit";
}

std::string share(double value) { return fixed(value, 3); }

std::string megabytes(std::int64_t bytes) { return fixed(static_cast<double>(bytes) * 1e-6, 1); }

// Ablation.

void print_ablation(std::ostream& out) {
  constexpr std::array names{"random, by parameters, all recomputed", "+ data", "+ model",
                             "+ memory"};
  dataset const data = synthetic_lengths(sample_count, usual_seed);
  for (auto const& [model, deepspeed] :
       {std::pair<std::string, double>{"6+20B", 38.9}, {"6+34B", 54.3}}) {
    auto const plans = plan_both(data, model, usual_scenario());
    auto const reference = reference_of(plans.ours, model_of_name(model));
    auto const paper = reference.paper_days;
    table rows({model, "paper: GPU days", "published here: GPU days", "this library: GPU days",
                "paper: speed-up", "published here: speed-up", "this library: speed-up",
                "published here: MFU", "this library: MFU", "published here: waiting",
                "this library: waiting"});
    rows.add({"InternVL's own DeepSpeed code", fixed(deepspeed, 1), "-", "-",
              times_or_dash(paper[0], deepspeed), "-", "-", "-", "-", "-", "-"});
    for (std::size_t lever = 0; lever != names.size(); ++lever) {
      auto const here = lever_cells("", plans.published.scenario, lever, reference);
      auto const ours = lever_cells("", plans.ours, lever, reference);
      rows.add({names[lever], paper[lever] > 0 ? fixed(paper[lever], 1) : "-", here[5], ours[5],
                times_or_dash(paper[0], paper[lever]), here[6], ours[6], here[2], ours[2], here[3],
                ours[3]});
    }
    rows.add({"the last row against DeepSpeed's", "-", "-", "-", times_or_dash(deepspeed, paper[3]),
              "-", "-", "-", "-", "-", "-"});
    if (model != "6+20B") out << '\n';
    rows.print_markdown(out);
  }
}

/// The speed-ups of a table as bars, by lever.
bars speedups_of(std::string const& model, both_plans const& plans) {
  constexpr std::array names{"random", "+ data", "+ model", "+ memory"};
  bars result{.title = model,
              .y_title = "speed-up",
              .kinds = {{"paper", colors::gray},
                        {"published method, computed here", colors::orange},
                        {"this library", colors::blue}},
              .groups = {},
              .digits = 2};
  auto const paper = published_days(model);
  auto const gain = [](planned_scenario const& planned, std::size_t lever) {
    return planned.gpu_seconds(0) / planned.gpu_seconds(lever);
  };
  for (std::size_t lever = 0; lever != names.size(); ++lever) {
    double const told =
        paper[lever] > 0 ? paper[0] / paper[lever] : std::numeric_limits<double>::quiet_NaN();
    result.groups.push_back(
        {names[lever], {told, gain(plans.published.scenario, lever), gain(plans.ours, lever)}});
  }
  return result;
}

void print_ablation_picture(std::ostream& out) {
  constexpr double width = 960;
  constexpr double margin = 24;
  constexpr double top = 52;
  constexpr double height = 340;
  dataset const data = synthetic_lengths(sample_count, usual_seed);
  std::string const title = "OmniBal's levers, one after the other";
  svg_drawing drawing;
  drawing.text({margin, 36}, title, {.size = 20, .weight = boldness::bold});
  double place = top;
  for (std::string const model : {"6+20B", "6+34B"}) {
    auto const plans = plan_both(data, model, usual_scenario());
    draw(drawing, {margin, place, width - 2 * margin, height},
         bar_chart(speedups_of(model, plans)));
    place += height + 20;
  }
  drawing.write(out, width, place, title,
                "The speed-up over random micro-batches with each lever: that of the paper, of the "
                "published method computed here, and of this library.");
}

void print_step(std::ostream& out, std::string const& name, planned_scenario const& planned,
                omnibal::training_lever lever) {
  auto const timeline = first_step(planned, lever).timeline;
  write_pipeline_picture(scaled(timeline, 1e-9), {"6+20B, one step of a rank: " + name, "s"}, out);
}

void print_before_picture(std::ostream& out) {
  auto const ours = plan_scenario(synthetic_lengths(sample_count, usual_seed), usual_scenario(),
                                  model_of_name("6+20B"), usual_seed);
  print_step(out, "random, stages of equal parameters", ours, omnibal::training_lever::baseline);
}

void print_after_picture(std::ostream& out) {
  auto const ours = plan_scenario(synthetic_lengths(sample_count, usual_seed), usual_scenario(),
                                  model_of_name("6+20B"), usual_seed);
  print_step(out, "all levers of this library", ours, omnibal::training_lever::memory);
}

/// From the published method to this library, one change after the other.
void print_levers(std::ostream& out) {
  dataset const data = synthetic_lengths(sample_count, usual_seed);
  table rows({"all levers", "6+20B: GPU days", "speed-up", "6+34B: GPU days", "speed-up"});
  std::array<std::vector<std::string>, 5> cells{
      {{"as published"},
       {"the best cuts and choices together, full or none"},
       {"selective recomputation too"},
       {"best fit instead of sampling and filtering"},
       {"an even schedule instead of random dealing"}}};
  for (std::string const model : {"6+20B", "6+34B"}) {
    auto const plans = plan_both(data, model, usual_scenario());
    planned_scenario const& ours = plans.ours;
    auto const& scenario = plans.published.scenario;
    auto const add = [&](std::size_t row, double days) {
      cells[row].push_back(fixed(days, 1));
      cells[row].push_back(times_or_dash(ours.gpu_days(0), days));
    };
    auto const& filtered = scenario.plan.balanced_data;
    auto const groups = best_groups(ours.samples);
    std::size_t const step = ours.assumed.data_ranks * ours.assumed.micro_batches;
    auto const dealt = grouped_batches(
        ours.samples, groups, dealt_at_random(groups.size(), step, usual_seed), ours.assumed);
    auto const with = [&](vlm_data const& batches, std::array<bool, 3> const& allowed) {
      return ours.gpu_days(ours.best_plan(batches, allowed), batches);
    };
    add(0, scenario.gpu_days(3));
    add(1, with(filtered, {true, false, true}));
    add(2, with(filtered, {true, true, true}));
    add(3, with(dealt, {true, true, true}));
    add(4, ours.gpu_days(3));
  }
  for (auto& row : cells) rows.add(std::move(row));
  rows.print_markdown(out);
}

// Data: tables 3, 7 and 8 of the paper.

/// Ways of making batches, one for each rank of a step, and how even they are.
struct batch_shares {
  double padding = 0;
  omnibal::resources<2, double> waiting{};
};

/// What ranks compute for batches that are padded to their longest sample.
loads_type padded_loads(omnibal::grouping const& batches, std::span<sample const> samples) {
  loads_type result;
  for (std::size_t b = 0; b != batches.size(); ++b) {
    omnibal::resources<2> load{};
    for (std::uint32_t const item : batches[b]) {
      load[0] += samples[item].images;
      load[1] = std::max(load[1], samples[item].tokens);
    }
    load[1] *= static_cast<std::int64_t>(batches[b].size());
    result.push_back(load);
  }
  return result;
}

/// The complete steps of ranks that take a batch each.
omnibal::steps complete(omnibal::steps const& all) {
  omnibal::steps result(all.ranks());
  for (std::size_t step = 0; step != all.size(); ++step) {
    if (all(step, all.ranks() - 1).empty()) continue;
    for (std::size_t rank = 0; rank != all.ranks(); ++rank) {
      for (std::uint32_t const batch : all(step, rank)) result.push(batch);
      result.close();
    }
  }
  return result;
}

batch_shares padded_shares(omnibal::grouping const& batches, omnibal::steps const& dealt,
                           std::span<sample const> samples) {
  return {omnibal::pad_ratio(batches.view(), samples, &sample::tokens),
          omnibal::dist_ratio(complete(dealt), padded_loads(batches, samples))};
}

batch_shares packed_shares(omnibal::grouping const& groups, omnibal::steps const& dealt,
                           std::span<sample const> samples) {
  return {0, omnibal::dist_ratio(complete(dealt),
                                 omnibal::group_loads(groups.view(), samples, images_and_tokens))};
}

std::vector<std::uint32_t> random_order(std::size_t count) {
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), std::uint32_t{0});
  omnibal::rng::fisher_yates{usual_seed}(std::span(order), 0);
  return order;
}

/// Neighbors of an order, as many as a batch has.
omnibal::grouping batches_of(std::span<std::uint32_t const> order, std::size_t size) {
  omnibal::grouping batches;
  for (std::size_t first = 0; first + size <= order.size(); first += size) {
    for (std::uint32_t const item : order.subspan(first, size)) batches.push(item);
    batches.close();
  }
  return batches;
}

/// One batch after the other.
omnibal::steps in_order(std::size_t batches, std::size_t ranks) {
  std::vector<std::uint32_t> order(batches);
  std::iota(order.begin(), order.end(), std::uint32_t{0});
  return omnibal::make_steps(order, ranks);
}

/// The samples of each step in random order; within a step the longest first, each to the rank with
/// the fewest tokens that still has room, as LLaVA groups by length.
omnibal::grouping device_groups(std::span<sample const> samples, std::size_t ranks,
                                std::size_t size) {
  auto order = random_order(samples.size());
  omnibal::grouping batches;
  for (std::size_t first = 0; first + ranks * size <= order.size(); first += ranks * size) {
    auto const step = std::span(order).subspan(first, ranks * size);
    std::ranges::stable_sort(step, std::ranges::greater{},
                             [&](std::uint32_t item) { return samples[item].tokens; });
    std::vector<std::vector<std::uint32_t>> parts(ranks);
    std::vector<std::int64_t> tokens(ranks, 0);
    for (std::uint32_t const item : step) {
      std::size_t least = ranks;
      for (std::size_t rank = 0; rank != ranks; ++rank) {
        if (parts[rank].size() == size) continue;
        if (least == ranks || tokens[rank] < tokens[least]) least = rank;
      }
      parts[least].push_back(item);
      tokens[least] += samples[item].tokens;
    }
    for (auto const& part : parts) {
      for (std::uint32_t const item : part) batches.push(item);
      batches.close();
    }
  }
  return batches;
}

void add_shares(table& rows, std::string const& name, batch_shares const& of,
                std::array<char const*, 3> const& paper) {
  rows.add({name, paper[0], share(of.padding), paper[1], share(of.waiting[0]), paper[2],
            share(of.waiting[1])});
}

void print_data(std::ostream& out) {
  dataset const data = synthetic_lengths(sample_count, usual_seed);
  vlm_assumptions const assumed = usual_scenario().assumed;
  auto const chosen = choose_samples(data, assumed, usual_seed);
  std::span<sample const> const samples = chosen.samples;
  std::size_t const ranks = assumed.data_ranks;
  std::size_t const size = assumed.batch_samples;
  auto sorted = random_order(samples.size());
  std::ranges::stable_sort(sorted, {}, [&](std::uint32_t item) { return samples[item].tokens; });

  table rows({"batches", "paper: padding", "padding", "paper: waiting, vision", "waiting, vision",
              "paper: waiting, language", "waiting, language"});
  auto const random = batches_of(random_order(samples.size()), size);
  add_shares(rows, "random", padded_shares(random, in_order(random.size(), ranks), samples),
             {".31", ".34", "-"});
  auto const by_length = batches_of(sorted, size);
  add_shares(
      rows, "sorted by length",
      padded_shares(by_length, dealt_at_random(by_length.size(), ranks, usual_seed), samples),
      {".014", ".47", ".40"});
  add_shares(rows, "sorted by length, neighbors in a step",
             padded_shares(by_length, in_order(by_length.size(), ranks), samples), {"-", "-", "-"});
  auto const grouped = device_groups(samples, ranks, size);
  add_shares(rows, "device groups",
             padded_shares(grouped, in_order(grouped.size(), ranks), samples), {"-", "-", "-"});
  auto const filtered = published_groups(samples, chosen.capacity, {}, usual_seed).groups;
  add_shares(rows, "sampling and filtering (ISF)",
             packed_shares(filtered, dealt_at_random(filtered.size(), ranks, usual_seed), samples),
             {"0", ".02", ".14"});
  auto const packed = best_groups(chosen);
  add_shares(rows, "this library",
             packed_shares(packed, even_steps(chosen, packed, ranks, usual_seed), samples),
             {"-", "-", "-"});
  rows.print_markdown(out);
}

/// Sampling and filtering with other numbers.
struct filtered_figures {
  omnibal::packing packed;
  omnibal::resources<2, double> waiting;

  [[nodiscard]] std::string below() const {
    return percent(
        static_cast<double>(packed.report.below_keep) / static_cast<double>(packed.groups.size()),
        1);
  }
};

filtered_figures filter(vlm_samples const& from, published_method const& method) {
  auto packed = published_groups(from.samples, from.capacity, method, usual_seed);
  auto const shares = packed_shares(
      packed.groups,
      dealt_at_random(packed.groups.size(), usual_scenario().assumed.data_ranks, usual_seed),
      from.samples);
  return {std::move(packed), shares.waiting};
}

void print_capacity(std::ostream& out) {
  dataset const data = synthetic_lengths(sample_count, usual_seed);
  auto const chosen = choose_samples(data, usual_scenario().assumed, usual_seed).capacity;
  table rows({"tiles Qv, tokens Qt", "oversized", "samples in a group", "below the rule",
              "waiting, vision", "waiting, language", "GPU days, + data", "the best fit's"});
  auto const model = model_of_name("6+20B");
  for (omnibal::resources<2> const capacity : {omnibal::resources<2>{9, 4096},
                                               {12, 4096},
                                               {16, 4096},
                                               {16, 4608},
                                               chosen,
                                               {18, 6016},
                                               {24, 8192}}) {
    auto const training = unplanned(fitting_samples(data, capacity), usual_scenario(), model);
    vlm_samples const& samples = training.samples;
    vlm_assumptions const& assumed = training.assumed;
    auto const found = filter(samples, {});
    auto const days = [&](vlm_data const& batches) {
      auto const costs = training.cost(batches.batches[0]);
      return fixed(training.gpu_days(omnibal::plan_by_parameters(costs, assumed.stages), batches),
                   1);
    };
    auto const& groups = found.packed.groups;
    auto const cells = assumed.data_ranks * assumed.micro_batches;
    auto const filtered = grouped_batches(
        samples, groups, dealt_at_random(groups.size(), cells, usual_seed), assumed);
    std::string name = std::to_string(capacity[0]) + ", " + std::to_string(capacity[1]);
    if (capacity == chosen) name += " (chosen)";
    rows.add(
        {name, counted(samples.oversized),
         fixed(static_cast<double>(groups.item_count()) / static_cast<double>(groups.size()), 2),
         found.below(), share(found.waiting[0]), share(found.waiting[1]), days(filtered),
         days(packed_batches(samples, assumed, usual_seed))});
  }
  rows.print_markdown(out);
}

void print_rounds(std::ostream& out) {
  dataset const data = synthetic_lengths(sample_count, usual_seed);
  auto const chosen = choose_samples(data, usual_scenario().assumed, usual_seed);
  auto const narrow = fitting_samples(data, {9, 4096});
  auto const name = [](vlm_samples const& from) {
    return std::to_string(from.capacity[0]) + ", " + std::to_string(from.capacity[1]);
  };
  auto const header = [&](std::string const& first) {
    std::vector<std::string> result{first};
    for (vlm_samples const* from : {&chosen, &narrow}) {
      for (char const* const column :
           {": groups", ": below the rule", ": waiting, vision", ": waiting, language"}) {
        result.push_back(name(*from) + column);
      }
    }
    return result;
  };
  auto const add = [&](table& rows, std::string const& first, published_method const& method) {
    std::vector<std::string> cells{first};
    for (vlm_samples const* from : {&chosen, &narrow}) {
      auto const found = filter(*from, method);
      cells.insert(cells.end(), {counted(found.packed.groups.size()), found.below(),
                                 share(found.waiting[0]), share(found.waiting[1])});
    }
    rows.add(std::move(cells));
  };
  table by_rounds(header("rounds"));
  for (std::size_t const rounds : {1u, 2u, 3u, 5u, 10u, 20u, 50u, 200u}) {
    add(by_rounds, std::to_string(rounds), {.rounds = rounds});
  }
  by_rounds.print_markdown(out);
  out << '\n';
  table by_slack(header("kept from so many tokens below Qt"));
  for (std::int64_t const slack : {0, 32, 64, 128, 256, 512, 1024}) {
    add(by_slack, std::to_string(slack), {.token_slack = slack});
  }
  by_slack.print_markdown(out);
}

/// Mixtures with the shapes of the paper's data sets.
std::vector<std::pair<std::string, dataset>> data_sets() {
  auto const with = [](std::string name, auto const& change) {
    dataset data = synthetic_lengths(sample_count, usual_seed);
    change(data.samples);
    return std::pair{std::move(name), std::move(data)};
  };
  constexpr std::int64_t tile = 256;
  auto const one_tile = [=](std::vector<sample>& samples) {
    for (sample& one : samples) {
      one.tokens -= tile * std::max<std::int64_t>(one.images - 1, 0);
      one.images = std::min<std::int64_t>(one.images, 1);
    }
  };
  auto const captions = [=](std::vector<sample>& samples) {
    std::erase_if(samples, [](sample const& one) { return one.images == 0; });
    one_tile(samples);
    for (sample& one : samples) one.tokens = tile + (one.tokens - tile) / 4;
  };
  std::vector<std::pair<std::string, dataset>> result;
  result.push_back(with("tiles and text, as InternVL-1.2M", [](auto const&) {}));
  result.push_back(with("one image or none, as LLaVA-665K", one_tile));
  result.push_back(with("one image, short text, as LCS-558K", captions));
  return result;
}

void print_sets(std::ostream& out) {
  table rows({"synthetic mixture", "random: padding", "waiting, vision", "waiting, language",
              "ISF: waiting, vision", "waiting, language", "this library: waiting, vision",
              "waiting, language", "all levers: published here", "this library"});
  for (auto const& [name, data] : data_sets()) {
    auto const plans = plan_both(data, "6+20B", usual_scenario());
    auto const& samples = plans.ours.samples.samples;
    auto const& capacity = plans.ours.samples.capacity;
    std::size_t const ranks = plans.ours.assumed.data_ranks;
    auto const random = batches_of(random_order(samples.size()), plans.ours.assumed.batch_samples);
    auto const before = padded_shares(random, in_order(random.size(), ranks), samples);
    auto const filtered = published_groups(samples, capacity, {}, usual_seed).groups;
    auto const published =
        packed_shares(filtered, dealt_at_random(filtered.size(), ranks, usual_seed), samples);
    auto const packed = best_groups(plans.ours.samples);
    auto const ours =
        packed_shares(packed, even_steps(plans.ours.samples, packed, ranks, usual_seed), samples);
    rows.add({name, share(before.padding), share(before.waiting[0]), share(before.waiting[1]),
              share(published.waiting[0]), share(published.waiting[1]), share(ours.waiting[0]),
              share(ours.waiting[1]), gain_of(plans.published.scenario, 3),
              gain_of(plans.ours, 3)});
  }
  rows.print_markdown(out);
}

// Model: table 4.

/// The standard deviation of the stages' forward times over their mean.
double variation(std::span<std::int64_t const> times, std::span<std::uint32_t const> boundaries) {
  auto const sum = omnibal::stage_sum(times);
  std::size_t const stages = boundaries.size() - 1;
  double const mean = static_cast<double>(sum(0, 0, times.size())) / static_cast<double>(stages);
  double squares = 0;
  for (std::size_t s = 0; s != stages; ++s) {
    double const distance = static_cast<double>(sum(s, boundaries[s], boundaries[s + 1])) - mean;
    squares += distance * distance;
  }
  return std::sqrt(squares / static_cast<double>(stages)) / mean;
}

void print_cuts(std::ostream& out) {
  dataset const data = synthetic_lengths(sample_count, usual_seed);
  for (std::string const model : {"6+20B", "6+34B"}) {
    vlm_scenario scenario = usual_scenario();
    scenario.link_bytes_per_second = find_machine("a100-80gb").link_bytes;
    auto const plans = plan_both(data, model, scenario);
    auto const& published = plans.published;
    auto const& batches = published.scenario.plan.balanced_data;
    auto const& times = published.means.forward_nanoseconds;
    std::size_t const stages = scenario.assumed.stages;
    auto const by_parameters = plans.ours.plan.levers[0].plan.boundaries;
    auto const ours = plans.ours.best_plan(batches, {false, false, true});
    auto const by_variance = plan_as_published(plans.ours, {.weights = {.traffic = 0}}, usual_seed);

    table rows({model + ", cuts", "variation of forward times", "MB each way", "against parameters",
                "paper: against its baseline", "GPU days", "paper: GPU days"});
    auto const days = [&](std::span<std::uint32_t const> boundaries) {
      plan_type plan;
      plan.boundaries.assign(boundaries.begin(), boundaries.end());
      plan.choices.assign(times.size(), 2);
      return plans.ours.gpu_days(plan, batches);
    };
    omnibal::cut_score const score(times, published.means.sent_bytes, stages);
    auto const near = omnibal::neighbors(ours.boundaries, 1);
    auto const measured = omnibal::search_cuts(near, score, 10, days);
    auto const add = [&](std::string const& name, std::span<std::uint32_t const> boundaries,
                         std::string const& paper_megabytes, std::string const& paper_days) {
      auto const sent = sent_bytes(published.means, boundaries);
      auto const more = sent - sent_bytes(published.means, by_parameters);
      rows.add({name, percent(variation(times, boundaries), 2), megabytes(sent),
                (more > 0 ? "+" : "") + megabytes(more), paper_megabytes,
                fixed(days(boundaries), 2), paper_days});
    };
    bool const is_first = model == "6+20B";
    add("equal parameters", by_parameters, "-", "-");
    add("greedy walk over times: the anchor", published.anchor, "-", "-");
    add("equal times, exactly", omnibal::partition_minimax(times, stages).boundaries,
        is_first ? "+16.6" : "-", is_first ? "30.9" : "-");
    add("published search, by variance alone",
        by_variance.search.candidates[by_variance.search.best].boundaries, "-", "-");
    add("published search, by variance and traffic",
        published.search.candidates[published.search.best].boundaries, is_first ? "-21.0" : "-",
        is_first ? "29.0" : "-");
    add("this library", ours.boundaries, "-", "-");
    add("the best ten near these, measured", measured.candidates[measured.best].boundaries, "-",
        "-");
    if (!is_first) out << '\n';
    rows.print_markdown(out);
  }
}

// Scenarios: table 5, seeds, degrees, memory.

void add_pair(table& rows, std::vector<std::string> cells, both_plans const& plans) {
  for (std::string cell :
       {days_of(plans.ours, 0), days_of(plans.published.scenario, 3), days_of(plans.ours, 3),
        gain_of(plans.published.scenario, 3), gain_of(plans.ours, 3)}) {
    cells.push_back(std::move(cell));
  }
  rows.add(std::move(cells));
}

constexpr std::array<char const*, 5> pair_columns{
    "random: GPU days", "published here: GPU days", "this library: GPU days",
    "published here: speed-up", "this library: speed-up"};

std::vector<std::string> pair_header(std::vector<std::string> first) {
  first.insert(first.end(), pair_columns.begin(), pair_columns.end());
  return first;
}

vlm_scenario with_degrees(std::size_t stages, std::int64_t tensor, std::size_t data) {
  vlm_scenario result = usual_scenario();
  result.assumed.stages = stages;
  result.assumed.tensor_ranks = tensor;
  result.assumed.data_ranks = data;
  return result;
}

void print_pairs(std::ostream& out) {
  struct pair {
    std::string tower;
    std::string language;
    std::size_t stages;
    std::int64_t tensor;
    std::size_t data;
  };
  dataset const data = synthetic_lengths(sample_count, usual_seed);
  table rows(pair_header({"tower", "language model", "stages x tensor x data"}));
  for (pair const& one : {pair{"internvit-6b", "internlm2-7b", 4, 2, 8},
                          {"internvit-6b", "llama3-8b", 4, 2, 8},
                          {"internvit-6b", "internlm2-20b", 4, 2, 8},
                          {"internvit-6b", "yi-34b", 4, 2, 8},
                          {"internvit-6b", "llama3-70b", 8, 4, 4},
                          {"internvit-6b", "qwen1.5-110b", 8, 8, 4},
                          {"eva-clip-e", "internlm2-7b", 4, 2, 8},
                          {"eva-clip-e", "llama3-8b", 4, 2, 8},
                          {"eva-clip-e", "internlm2-20b", 4, 2, 8}}) {
    auto const plans = plan_both(data, one.tower + "+" + one.language,
                                 with_degrees(one.stages, one.tensor, one.data));
    add_pair(rows,
             {one.tower, one.language,
              std::to_string(one.stages) + " x " + std::to_string(one.tensor) + " x " +
                  std::to_string(one.data)},
             plans);
  }
  rows.print_markdown(out);
}

void print_seeds(std::ostream& out) {
  constexpr std::array<std::uint64_t, 5> seeds{1, 2, 3, 4, 5};
  for (std::string const model : {"6+20B", "6+34B"}) {
    table rows({model + ", speed-up over random of", "+ data", "+ model", "+ memory",
                "least to most of the last"});
    std::vector<std::vector<double>> published(3);
    std::vector<std::vector<double>> ours(3);
    for (std::uint64_t const seed : seeds) {
      auto const plans =
          plan_both(synthetic_lengths(sample_count, seed), model, usual_scenario(), seed);
      for (std::size_t lever = 1; lever <= 3; ++lever) {
        auto const& scenario = plans.published.scenario;
        published[lever - 1].push_back(scenario.gpu_seconds(0) / scenario.gpu_seconds(lever));
        ours[lever - 1].push_back(plans.ours.gpu_seconds(0) / plans.ours.gpu_seconds(lever));
      }
    }
    auto const add = [&](std::string const& name, std::vector<std::vector<double>> const& gains) {
      std::vector<std::string> cells{name};
      for (auto const& of_lever : gains) {
        double const sum = std::accumulate(of_lever.begin(), of_lever.end(), 0.0);
        cells.push_back(fixed(sum / static_cast<double>(of_lever.size()), 2) + "x");
      }
      auto const [least, most] = std::ranges::minmax(gains.back());
      cells.push_back(fixed(least, 2) + " to " + fixed(most, 2));
      rows.add(std::move(cells));
    };
    add("published here, mean of five seeds", published);
    add("this library", ours);
    if (model != "6+20B") out << '\n';
    rows.print_markdown(out);
  }
}

void print_degrees(std::ostream& out) {
  dataset const data = synthetic_lengths(sample_count, usual_seed);
  for (std::string const model : {"6+20B", "6+34B"}) {
    table rows(pair_header({model + ", 64 devices: stages x tensor x data"}));
    for (auto const& [stages, tensor] : {std::pair<std::size_t, std::int64_t>{2, 4},
                                         {4, 2},
                                         {4, 4},
                                         {8, 1},
                                         {8, 2},
                                         {8, 4},
                                         {16, 1},
                                         {16, 2}}) {
      std::size_t const ranks = 64 / stages / static_cast<std::size_t>(tensor);
      add_pair(
          rows,
          {std::to_string(stages) + " x " + std::to_string(tensor) + " x " + std::to_string(ranks)},
          plan_both(data, model, with_degrees(stages, tensor, ranks)));
    }
    if (model != "6+20B") out << '\n';
    rows.print_markdown(out);
  }
}

void print_memory(std::ostream& out) {
  dataset const data = synthetic_lengths(sample_count, usual_seed);
  for (std::string const model : {"6+20B", "6+34B"}) {
    table rows(pair_header({model + ": memory of a device", "stages x tensor x data"}));
    for (std::int64_t const memory : {40, 64, 80}) {
      for (auto const& [stages, tensor] :
           {std::pair<std::size_t, std::int64_t>{4, 2}, {8, 2}, {8, 4}}) {
        std::size_t const ranks = 64 / stages / static_cast<std::size_t>(tensor);
        vlm_scenario scenario = with_degrees(stages, tensor, ranks);
        scenario.assumed.memory_bytes = memory * 1'000'000'000;
        add_pair(rows,
                 {std::to_string(memory) + " GB", std::to_string(stages) + " x " +
                                                      std::to_string(tensor) + " x " +
                                                      std::to_string(ranks)},
                 plan_both(data, model, scenario));
      }
    }
    if (model != "6+20B") out << '\n';
    rows.print_markdown(out);
  }
}

constexpr study_section sections[]{{"ablation", print_ablation},
                                   {"levers", print_levers},
                                   {"data", print_data},
                                   {"capacity", print_capacity},
                                   {"rounds", print_rounds},
                                   {"sets", print_sets},
                                   {"cuts", print_cuts},
                                   {"pairs", print_pairs},
                                   {"seeds", print_seeds},
                                   {"degrees", print_degrees},
                                   {"memory", print_memory},
                                   {"ablation-picture", print_ablation_picture},
                                   {"before-picture", print_before_picture},
                                   {"after-picture", print_after_picture}};

}  // namespace

int main(int count, char** words) {
  return examples::print_section("study_omnibal", sections, count, words);
}
