/// \file
/// Plans the training of InternVL-Chat 6+20B and 6+34B lever by lever, as in OmniBal's ablation:
/// `plan_vlm --help`. Its assumptions are in support/vlm_assumptions.hpp.

#include "support/dataset.hpp"
#include "support/pipeline_picture.hpp"
#include "support/progress.hpp"
#include "support/read_lengths.hpp"
#include "support/staged_files.hpp"
#include "support/synthetic.hpp"
#include "support/table.hpp"
#include "support/vlm_assumptions.hpp"
#include "support/vlm_options.hpp"
#include "support/vlm_training.hpp"

#include <omnibal/cost/presets.hpp>
#include <omnibal/cost/training_time.hpp>
#include <omnibal/pipeline/one_f_one_b.hpp>
#include <omnibal/pipeline/simulate.hpp>
#include <omnibal/pipeline/write_trace.hpp>
#include <omnibal/plan/plan_training.hpp>
#include <omnibal/plan/recompute_lists.hpp>
#include <omnibal/plan/write_plan.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using namespace examples;

/// A model with the figures of others: GPU days of Yao et al., "OmniBal", ICML 2025, table of the
/// ablation, and GPU seconds per sample of a simulation made before this program.
struct published {
  std::string name;
  omnibal::vision_language_model model;
  /// By lever; zero where not told.
  std::array<double, 4> paper_days;
  std::array<double, 4> earlier_seconds;
};

std::vector<published> models() {
  return {{"6+20B", omnibal::internvl_6_20b, {61.8, 51.9, 29.0, 21.3}, {5.03, 4.32, 2.64, 2.00}},
          {"6+34B", omnibal::internvl_6_34b, {75.4, 0, 0, 30.5}, {7.61, 0, 0, 2.86}}};
}

dataset load(vlm_options const& given) {
  if (given.inputs.empty()) return synthetic_lengths(given.synthetic_samples, given.seed);
  progress hidden(visibility::hidden);
  dataset data;
  for (auto const& path : given.inputs) {
    read_lengths(path, input_format::detect, {}, hidden, data);
  }
  return data;
}

std::string times_or_dash(double first, double value) {
  return first > 0 && value > 0 ? fixed(first / value, 2) + "x" : "-";
}

std::string gigabytes(std::vector<std::int64_t> const& bytes) {
  std::string result;
  for (std::int64_t const value : bytes) {
    if (!result.empty()) result += ' ';
    result += fixed(static_cast<double>(value) * 1e-9, 0);
  }
  return result;
}

using plan_type = omnibal::training_plan<vlm_batch>;

vlm_cost cost_of(published const& one, vlm_assumptions const& assumed) {
  return {padded(one.model, assumed.tensor_ranks), assumed.degrees()};
}

/// The samples whose time the estimate of a lever is.
double samples_of(plan_type const& plan, std::size_t lever) {
  return static_cast<double>(samples_of(lever == 0 ? plan.first_data : plan.balanced_data));
}

/// Tokens of the language model per sample, padding included.
double tokens_per_sample(vlm_data const& data) {
  double tokens = 0;
  for (std::uint32_t const batch : data.schedule.cells().items()) {
    tokens += static_cast<double>(data.batches[batch].work.documents.tokens);
  }
  return tokens / static_cast<double>(samples_of(data));
}

/// Per sample, or zero where no plan fits the memory.
double gpu_seconds(plan_type const& plan, std::size_t lever, vlm_assumptions const& assumed) {
  auto const& estimate = plan.levers[lever].estimate;
  return static_cast<double>(estimate.nanoseconds) * 1e-9 * assumed.gpus() /
         samples_of(plan, lever);
}

void print_table(published const& one, plan_type const& plan, vlm_assumptions const& assumed) {
  double const flops_per_sample = flops_of(plan.balanced_data, one.model) / samples_of(plan, 1);
  constexpr std::array names{"random, by parameters", "+ data", "+ model", "+ memory"};
  table rows({one.name, "s/step", "MFU", "waiting", "GPU s/sample", "GPU days", "speed-up", "paper",
              "earlier model", "GB per stage"});
  double const first = gpu_seconds(plan, 0, assumed);
  for (std::size_t lever = 0; lever != names.size(); ++lever) {
    auto const& result = plan.levers[lever];
    if (result.plan.status != omnibal::plan_status::ok) {
      rows.add({names[lever], "stage " + std::to_string(result.plan.stage) + " lacks " +
                                  gigabytes({result.plan.missing_bytes}) + " GB"});
      continue;
    }
    double const samples = samples_of(plan, lever);
    double const seconds = static_cast<double>(result.estimate.nanoseconds) * 1e-9;
    double const per_sample = gpu_seconds(plan, lever, assumed);
    rows.add({names[lever], fixed(seconds / static_cast<double>(result.estimate.steps), 2),
              percent(omnibal::flops_utilisation({.flops = flops_per_sample * samples,
                                                  .seconds = seconds,
                                                  .gpus = assumed.gpus(),
                                                  .peak_flops_per_gpu_second = assumed.peak_flops}),
                      1),
              percent(result.estimate.waiting_share, 1), fixed(per_sample, 2),
              fixed(per_sample * assumed.training_samples / 86400, 1),
              fixed(first / per_sample, 2) + "x",
              times_or_dash(one.paper_days[0], one.paper_days[lever]),
              times_or_dash(one.earlier_seconds[0], one.earlier_seconds[lever]),
              gigabytes(result.estimate.peak_bytes)});
  }
  rows.print(std::cout);
}

void print_stages(plan_type const& plan) {
  double const padding =
      1 - tokens_per_sample(plan.balanced_data) / tokens_per_sample(plan.first_data);
  std::cout << "\nPadding of the random micro-batches: " << percent(padding, 1)
            << " of their tokens\n";
  auto const& best = plan[omnibal::training_lever::memory].plan;
  if (best.status != omnibal::plan_status::ok) return;
  std::cout << "Last plan: stages begin with layers";
  for (std::size_t s = 0; s + 1 < best.boundaries.size(); ++s)
    std::cout << ' ' << best.boundaries[s];
  std::cout << "; layers that keep all, some, the input:";
  for (std::size_t s = 0; s != best.stages.size(); ++s) {
    std::array<std::size_t, 3> counts{};
    for (std::uint32_t const choice : best.choices_of(s)) ++counts[choice];
    std::cout << (s == 0 ? " " : ", ") << counts[0] << '/' << counts[1] << '/' << counts[2];
  }
  double const step = static_cast<double>(best.step_time);
  std::cout << "; gap " << percent((step - static_cast<double>(best.lower_bound)) / step, 3)
            << "\n\n";
}

/// The first step of the first rank, as it runs under the plan.
omnibal::simulation<std::int64_t> first_step(plan_type const& plan, vlm_cost const& cost,
                                             vlm_assumptions const& assumed) {
  auto const& best = plan[omnibal::training_lever::memory].plan;
  auto const batches = plan.balanced_data.schedule(0, 0);
  std::vector<std::vector<omnibal::stage_time<>>> times(assumed.stages);
  for (std::uint32_t const batch : batches) {
    auto const layers = cost(plan.balanced_data.batches[batch]);
    for (std::size_t s = 0; s != assumed.stages; ++s) {
      auto& time = times[s].emplace_back();
      for (std::size_t l = best.boundaries[s]; l != best.boundaries[s + 1]; ++l) {
        auto const& extra = layers[l].choices[best.choices[l]].extra;
        time.forward += assumed.device(layers[l].forward);
        time.backward += assumed.device(layers[l].backward) + assumed.device(extra);
      }
    }
  }
  omnibal::one_f_one_b const schedule{.stages = assumed.stages, .micro_batches = batches.size()};
  return omnibal::simulate(schedule, times, std::int64_t{0}, std::int64_t{0},
                           {.timeline = omnibal::timeline_policy::recorded});
}

void write_files(published const& one, plan_type const& plan, vlm_cost const& cost,
                 vlm_assumptions const& assumed, std::filesystem::path const& directory) {
  auto const& best = plan[omnibal::training_lever::memory].plan;
  if (best.status != omnibal::plan_status::ok) return;
  auto const timeline = first_step(plan, cost, assumed).timeline;
  staged_files files;
  auto const path = [&](std::string const& suffix) { return directory / (one.name + suffix); };
  files.write(path(".trace.json"), [&](std::ostream& out) {
    omnibal::write_trace(timeline, std::ostreambuf_iterator<char>(out), {.process = one.name});
  });
  files.write(path(".svg"), [&](std::ostream& out) {
    write_pipeline_picture(scaled(timeline, 1e-9),
                           {"InternVL-Chat " + one.name + ", one step of a rank", "s"}, out);
  });
  files.write(path(".recompute.txt"), [&](std::ostream& out) {
    auto const full = static_cast<std::uint32_t>(omnibal::recompute_choice::full);
    auto const lists = omnibal::recompute_lists(best, full);
    for (std::size_t s = 0; s != lists.size(); ++s) {
      out << "stage " << s << ':';
      for (std::uint32_t const layer : lists[s]) out << ' ' << layer;
      out << '\n';
    }
  });
  files.write(path(".plan.json"), [&](std::ostream& out) {
    omnibal::write_plan(best, std::ostreambuf_iterator<char>(out));
  });
  files.commit();
}

plan_type plan_model(published const& one, vlm_samples const& samples,
                     vlm_assumptions const& assumed, std::uint64_t seed) {
  omnibal::pipeline_machine const machine{.stages = assumed.stages,
                                          .memory_bytes = {assumed.memory_bytes},
                                          .reserve_bytes = {assumed.reserve_bytes},
                                          .device = assumed.device};
  auto const first = [&](vlm_samples const& from) { return random_batches(from, assumed, seed); };
  auto const balanced = [&](vlm_samples const& from) {
    return packed_batches(from, assumed, seed);
  };
  return omnibal::plan_training(samples, machine, {.micro_batches = assumed.micro_batches}, first,
                                balanced, cost_of(one, assumed));
}

/// Speed-ups of the three levers together and one by one where one assumption is another.
void print_sensitivity(dataset const& data, vlm_options const& given) {
  struct change {
    std::string name;
    void (*apply)(vlm_assumptions&);
  };
  std::vector<change> const changes{
      {"as assumed", [](vlm_assumptions&) {}},
      {"4 micro-batches", [](vlm_assumptions& a) { a.micro_batches = 4; }},
      {"8 micro-batches", [](vlm_assumptions& a) { a.micro_batches = 8; }},
      {"32 micro-batches", [](vlm_assumptions& a) { a.micro_batches = 32; }},
      {"64 GB", [](vlm_assumptions& a) { a.memory_bytes = 64'000'000'000; }},
      {"96 GB", [](vlm_assumptions& a) { a.memory_bytes = 96'000'000'000; }},
      {"groups of 2 samples", [](vlm_assumptions& a) { a.batch_samples = 2; }},
      {"groups of 3 samples", [](vlm_assumptions& a) { a.batch_samples = 3; }},
      {"40 % of the peak",
       [](vlm_assumptions& a) { a.device.flops_per_second = 124'800'000'000'000; }},
      {"1.5 TB/s for other work",
       [](vlm_assumptions& a) { a.device.bytes_per_second = 1'500'000'000'000; }},
      {"8 stages", [](vlm_assumptions& a) {
         a.stages = 8;
         a.data_ranks = 4;
       }}};
  for (published const& one : models()) {
    table rows({one.name + ", speed-up", "data", "model", "memory", "all"});
    for (change const& changed : changes) {
      vlm_assumptions assumed;
      changed.apply(assumed);
      auto const samples = choose_samples(data, assumed, given.seed);
      auto const plan = plan_model(one, samples, assumed, given.seed);
      std::vector<std::string> row{changed.name};
      for (std::size_t lever = 1; lever != plan.levers.size(); ++lever) {
        row.push_back(times_or_dash(gpu_seconds(plan, lever - 1, assumed),
                                    gpu_seconds(plan, lever, assumed)));
      }
      row.push_back(times_or_dash(gpu_seconds(plan, 0, assumed), gpu_seconds(plan, 3, assumed)));
      rows.add(row);
    }
    rows.print(std::cout);
    std::cout << '\n';
  }
}

void run(vlm_options const& given) {
  vlm_assumptions const assumed;
  dataset const data = load(given);
  vlm_samples const samples = choose_samples(data, assumed, given.seed);
  std::cout << counted(samples.samples.size()) << " samples under " << samples.capacity[0]
            << " images and " << samples.capacity[1] << " tokens, " << counted(samples.oversized)
            << " larger ones left out\n\n";
  for (published const& one : models()) {
    auto const plan = plan_model(one, samples, assumed, given.seed);
    print_table(one, plan, assumed);
    print_stages(plan);
    if (!given.output.empty()) {
      write_files(one, plan, cost_of(one, assumed), assumed, given.output);
    }
  }
  if (given.wants_sensitivity) print_sensitivity(data, given);
}

}  // namespace

int main(int count, char** words) {
  try {
    auto const given = parse_vlm(count, words);
    if (given) run(*given);
    std::cout.flush();
    if (!std::cout) throw std::runtime_error("cannot write to the standard output");
    return 0;
  } catch (std::exception const& error) {
    std::cerr << "plan_vlm: error: " << error.what() << '\n';
    return 1;
  }
}
