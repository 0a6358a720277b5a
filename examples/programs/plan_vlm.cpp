// SPDX-License-Identifier: Apache-2.0
/// \file
/// Plans the training of models lever by lever, as in OmniBal's ablation: `plan_vlm --help`. Its
/// assumptions are in models/vlm_assumptions.hpp.

#include "models/model_file.hpp"
#include "options/vlm_options.hpp"
#include "plans/vlm_scenarios.hpp"
#include "readers/dataset.hpp"
#include "readers/read_plan.hpp"
#include "reports/staged_files.hpp"
#include "reports/table.hpp"
#include "reports/vlm_exports.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using namespace examples;

/// Tokens of the language model per sample, padding included.
double tokens_per_sample(vlm_data const& data) {
  double tokens = 0;
  for (std::uint32_t const batch : data.schedule.cells().items()) {
    tokens += static_cast<double>(data.batches[batch].work.documents.tokens);
  }
  return tokens / static_cast<double>(samples_of(data));
}

void print_table(model_description const& model, planned_scenario const& planned) {
  constexpr std::array names{"random, by parameters", "+ data", "+ model", "+ memory"};
  std::vector<std::string> header{model.name};
  header.insert(header.end(), lever_columns.begin(), lever_columns.end());
  table rows(header);
  auto const reference = reference_of(planned, model);
  for (std::size_t lever = 0; lever != names.size(); ++lever) {
    rows.add(lever_cells(names[lever], planned, lever, reference));
  }
  if (planned.offloaded) rows.add(offload_cells("+ offload", planned, reference));
  rows.print(std::cout);
}

void print_stages(vlm_plan const& plan) {
  double const padding =
      1 - tokens_per_sample(plan.balanced_data) / tokens_per_sample(plan.first_data);
  std::cout << "\nPadding of the random micro-batches: " << percent(padding, 1)
            << " of their tokens\n";
  auto const& best = plan[omnibal::training_lever::memory].plan;
  if (best.status != omnibal::solve_status::solved) return;
  std::cout << "Last plan: " << (best.chunks == 1 ? "" : "virtual ") << "stages begin with layers";
  for (std::size_t s = 0; s + 1 < best.boundaries.size(); ++s)
    std::cout << ' ' << best.boundaries[s];
  std::cout << ";\n  layers that keep all, some, the input:";
  for (std::size_t s = 0; s + 1 < best.boundaries.size(); ++s) {
    std::array<std::size_t, 3> counts{};
    for (std::uint32_t const choice : best.choices_of(s)) ++counts[choice];
    std::cout << (s == 0 ? " " : ", ") << counts[0] << '/' << counts[1] << '/' << counts[2];
  }
  double const step = static_cast<double>(best.step_time);
  std::cout << ";\n  gap " << percent((step - static_cast<double>(best.lower_bound)) / step, 3)
            << '\n';
}

void print_layout(megatron_export const& megatron) {
  std::cout << "Megatron layout: " << megatron.remark << '\n';
  if (!megatron.layout.empty()) std::cout << "  " << megatron.layout << '\n';
  std::cout << '\n';
}

std::string seconds_or_dash(double seconds) { return seconds > 0 ? fixed(seconds, 2) : "-"; }

/// What the levers give one by one and together where one assumption is another.
void print_sensitivity(dataset const& data, vlm_options const& given) {
  for (model_description const& model : given.models) {
    table rows(
        {model.name, "random, GPU s/sample", "all levers", "data", "model", "memory", "all"});
    dataset const own = lengths_for(data, model);
    for (vlm_scenario const& scenario : vlm_scenarios(given.scenario)) {
      bool const needs_images = scenario.tiles != tile_mix::as_given;
      if (needs_images && own.kind == sample_kind::text) continue;
      auto const planned =
          plan_scenario(own, scenario, model, given.seed, profile_of(given, model, scenario));
      auto const gain = [&](std::size_t from, std::size_t to) {
        return times_or_dash(planned.gpu_seconds(from), planned.gpu_seconds(to));
      };
      rows.add({scenario.name, seconds_or_dash(planned.gpu_seconds(0)),
                seconds_or_dash(planned.gpu_seconds(3)), gain(0, 1), gain(1, 2), gain(2, 3),
                gain(0, 3)});
    }
    rows.print(std::cout);
    std::cout << '\n';
  }
}

/// Simulates a plan that was written, and fails where it is not what was printed or does not fit.
void replay(std::filesystem::path const& path) {
  exported_plan const given = read_plan(path);
  auto const estimate = simulate_plan(given);
  auto const seconds = [](omnibal::training_estimate const& one) {
    return fixed(static_cast<double>(one.nanoseconds) * 1e-9 / static_cast<double>(one.steps), 2);
  };
  table rows({given.cost.model.name, "s/step", "waiting", "GB per stage"});
  rows.add({"as written", seconds(given.printed), percent(given.printed.waiting_share, 1),
            gigabytes(given.printed.peak_bytes)});
  rows.add({"simulated again", seconds(estimate), percent(estimate.waiting_share, 1),
            gigabytes(estimate.peak_bytes)});
  rows.print(std::cout);
  if (estimate.steps != given.printed.steps || estimate.nanoseconds != given.printed.nanoseconds ||
      estimate.waiting_share != given.printed.waiting_share ||
      estimate.peak_bytes != given.printed.peak_bytes) {
    throw std::runtime_error(path.string() + ": the simulation gives other figures");
  }
  std::int64_t const memory = given.machine.memory_bytes.values()[0];
  std::int64_t const most = *std::ranges::max_element(estimate.peak_bytes);
  if (most > memory) {
    throw std::runtime_error(path.string() + ": a stage takes " + gigabytes({most}) +
                             " GB, the memory has " + gigabytes({memory}));
  }
  std::cout << "No stage exceeds its memory of " << gigabytes({memory}) << " GB\n";
}

void run(vlm_options const& given) {
  if (!given.replayed.empty()) return replay(given.replayed);
  dataset const data = lengths_of(given);
  staged_files files;
  bool is_first = true;
  for (model_description const& model : given.models) {
    dataset const own = lengths_for(data, model);
    auto const planned = plan_scenario(own, given.scenario, model, given.seed,
                                       profile_of(given, model, given.scenario));
    if (is_first) std::cout << heading_of(planned, given.machine_name) << '\n';
    is_first = false;
    std::cout << remark_on(data, own) << clips_text(planned);
    print_table(model, planned);
    print_stages(planned.plan);
    if (planned.offloaded) std::cout << offload_text(planned);
    auto const megatron = export_to_megatron(planned);
    print_layout(megatron);
    if (!given.output.empty()) {
      write_plan_files(files, model.name, planned, megatron, {own, given.seed}, given.output);
    }
  }
  if (!given.output.empty()) std::cout << "Plan: " << given.output.string() << "\n\n";
  if (given.wants_sensitivity) print_sensitivity(data, given);
  std::cout.flush();
  if (!std::cout) throw std::runtime_error("cannot write to the standard output");
  files.commit();
}

}  // namespace

int main(int count, char** words) {
  try {
    auto const given = parse_vlm(count, words);
    if (given) run(*given);
    return 0;
  } catch (std::exception const& error) {
    std::cerr << "plan_vlm: error: " << error.what() << '\n';
    return 1;
  }
}
