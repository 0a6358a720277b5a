// SPDX-License-Identifier: Apache-2.0
/// \file
/// The tables of docs/evidence/step_model.md: how far predictions of training steps are from
/// published runs.
///
///     step_model RUNS.tsv [MEMORY.tsv] [--fit] [--runs]
///
/// The table of runs has a header line with the names of its columns. `--fit` prints constants that
/// are fitted to all runs of a machine; `--runs` prints each run.

#include "step_model/published_runs.hpp"

#include <omnibal/omnibal.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace study;
using omnibal::machine;
using constants = std::vector<double machine::*>;
using runs = std::vector<published_run>;

double predict(published_run const& run, machine on) {
  on.network_bytes_per_second *= run.network_ratio;
  return omnibal::predict_step(run.model, run.step, on).total();
}

/// A machine, the start of its fit, and the constants that its runs determine.
struct studied_machine {
  std::string name;
  machine preset;
  machine start;
  constants fitted;
};

std::vector<studied_machine> const& all_machines() {
  namespace presets = omnibal::machines;
  constants const host{&machine::matmul_flops_per_second, &machine::operand_bytes_per_second,
                       &machine::node_bytes_per_second, &machine::hop_seconds,
                       &machine::launch_seconds};
  constants const sharded{&machine::matmul_flops_per_second, &machine::memory_bytes_per_second,
                          &machine::attention_flops_per_second, &machine::network_bytes_per_second,
                          &machine::hop_seconds};
  constants const dense{&machine::matmul_flops_per_second, &machine::fp8_gain};
  constants with_node = dense;
  with_node.push_back(&machine::node_bytes_per_second);
  // Twice the network of the other A100; the H100 runs the kernels of attention of the A100 faster
  // by its multiprocessors and clock.
  machine a100_fsdp = presets::a100_start;
  a100_fsdp.network_bytes_per_second *= 2;
  machine h100_fsdp = presets::h100_start;
  h100_fsdp.network_bytes_per_second = a100_fsdp.network_bytes_per_second;
  h100_fsdp.attention_flops_per_second = 1.47 * a100_fsdp.attention_flops_per_second;
  machine omnipath = presets::a100_start;
  omnipath.network_bytes_per_second /= 2;
  // Only the rate of FP8 of the Ultra devices is known.
  machine gb300 = presets::gb200;
  machine b300 = presets::b200;
  b300.fp8_gain = presets::gb300.fp8_gain;
  b300.matmul_flops_per_second = presets::gb300.matmul_flops_per_second;
  static std::vector<studied_machine> const result{
      {"a100_infiniband", presets::a100_infiniband, presets::a100_start, host},
      {"a100_omnipath",
       presets::a100_omnipath,
       omnipath,
       {&machine::matmul_flops_per_second, &machine::node_bytes_per_second, &machine::hop_seconds}},
      {"a100_roce",
       presets::a100_roce,
       omnipath,
       {&machine::matmul_flops_per_second, &machine::network_bytes_per_second,
        &machine::hop_seconds}},
      {"a100_fsdp", presets::a100_fsdp, a100_fsdp, sharded},
      {"h100_fsdp", presets::h100_fsdp, h100_fsdp, sharded},
      {"h100_500w",
       presets::h100_500w,
       h100_fsdp,
       {&machine::matmul_flops_per_second, &machine::fp8_gain, &machine::attention_flops_per_second,
        &machine::node_bytes_per_second}},
      {"h100", presets::h100, presets::h100_start, dense},
      {"b200", presets::b200, presets::b200_start, with_node},
      {"gb200", presets::gb200, presets::gb200_start, dense},
      {"gb300", presets::gb300, gb300, {&machine::fp8_gain}},
      {"b300", presets::b300, b300, {}},
  };
  return result;
}

studied_machine const& machine_named(std::string_view name) {
  return *std::ranges::find(all_machines(), name, &studied_machine::name);
}

runs chosen(runs const& all, std::function<bool(published_run const&)> const& accepts) {
  runs result;
  std::ranges::copy_if(all, std::back_inserter(result), accepts);
  return result;
}

omnibal::machine_fit fitted(runs const& given, machine const& start, constants const& members) {
  return omnibal::fit_machine(given, &published_run::seconds, predict, start, members);
}

/// Shares by which predictions miss, in percent.
struct errors {
  std::vector<double> values;

  void add(runs const& given, machine const& on) {
    for (auto const& run : given) {
      values.push_back(100 * (predict(run, on) / run.seconds - 1));
    }
  }
  void print(std::string const& title) const {
    if (values.empty()) return;
    std::vector<double> sizes;
    double sum = 0;
    for (double const value : values) {
      sizes.push_back(std::abs(value));
      sum += std::abs(value);
    }
    std::ranges::sort(sizes);
    double bias = 0;
    for (double const value : values) bias += value / static_cast<double>(values.size());
    std::printf("| %s | %zu | %.1f | %.1f | %.1f | %+.1f |\n", title.c_str(), sizes.size(),
                sum / static_cast<double>(sizes.size()), sizes[sizes.size() / 2], sizes.back(),
                bias);
  }
};

constexpr char const* header =
    "| runs | number | mean error in %% | median | largest | bias |\n|---|---|---|---|---|---|\n";

void print_presets(runs const& all, bool each) {
  std::printf("\n## Constants that are shipped\n\n");
  std::printf(header);
  for (auto const& one : all_machines()) {
    std::map<std::string, runs> by_source;
    for (auto const& run : all) {
      if (run.machine_name != one.name) continue;
      by_source[run.source + (run.has_experts ? ", experts" : "") + (run.is_fp8 ? ", FP8" : "")]
          .push_back(run);
    }
    for (auto const& [source, given] : by_source) {
      errors found;
      found.add(given, one.preset);
      found.print(one.name + ": " + source);
      if (!each) continue;
      for (std::size_t i = 0; i != given.size(); ++i) {
        std::printf("    %s %s %.4g s %+.1f %%\n", given[i].id.c_str(), given[i].model_name.c_str(),
                    given[i].seconds, found.values[i]);
      }
    }
  }
}

/// Predicts each model with constants that were fitted to the other models.
void print_left_out(std::string const& title, runs const& given, machine const& start,
                    constants const& members) {
  std::map<std::string, int> names;
  for (auto const& run : given) ++names[run.model_name];
  errors found;
  errors in_fp8;
  std::string detail;
  for (auto const& counted : names) {
    std::string const& name = counted.first;
    auto const others = chosen(given, [&](auto const& run) { return run.model_name != name; });
    auto const left = chosen(given, [&](auto const& run) { return run.model_name == name; });
    if (others.size() < members.size()) continue;
    errors one;
    one.add(left, fitted(others, start, members).fitted);
    found.values.insert(found.values.end(), one.values.begin(), one.values.end());
    for (std::size_t i = 0; i != left.size(); ++i) {
      if (left[i].is_fp8) in_fp8.values.push_back(one.values[i]);
    }
    double const worst =
        *std::ranges::max_element(one.values, {}, [](double value) { return std::abs(value); });
    char text[160];
    std::snprintf(text, sizeof text, "%s%s %+.1f", detail.empty() ? "" : ", ", name.c_str(), worst);
    detail += text;
  }
  found.print(title);
  if (in_fp8.values.size() < found.values.size()) in_fp8.print("of these, FP8: " + title);
  std::fprintf(stderr, "    %s: %s\n", title.c_str(), detail.c_str());
}

void print_splits(runs const& all) {
  std::printf("\n## Constants that never saw the predicted runs\n\n");
  std::printf(header);
  auto const of = [&](std::string_view source) {
    return chosen(all, [&](auto const& run) { return run.source == source; });
  };
  auto const of_machine = [&](std::string_view name, auto const& accepts) {
    return chosen(all, [&](auto const& run) { return run.machine_name == name && accepts(run); });
  };
  auto const is_dense = [](published_run const& run) { return !run.has_experts; };
  auto const leave_out = [&](std::string const& title, std::string_view name, runs const& given) {
    auto const& one = machine_named(name);
    print_left_out(title + ", one model left out", given, one.start, one.fitted);
  };
  {
    auto const& one = machine_named("a100_infiniband");
    auto const given =
        chosen(all, [](auto const& run) { return run.source.starts_with("vtrain"); });
    if (given.size() >= one.fitted.size()) {
      machine const found = fitted(given, one.start, one.fitted).fitted;
      errors sc21;
      sc21.add(of("sc21"), found);
      errors both;
      both.add(of("seqsel"), found);
      sc21.print("vTrain fitted, SC21 predicted");
      both.print("vTrain fitted, Korthikanti predicted");
      both.values.insert(both.values.end(), sc21.values.begin(), sc21.values.end());
      both.print("vTrain fitted, both predicted");
    }
    leave_out("vTrain", one.name, given);
  }
  {
    auto const& one = machine_named("a100_omnipath");
    auto const has_eight = [](auto const& run) { return run.step.degrees.tensor == 8; };
    auto const bloom = of("bloom");
    auto const eight = chosen(bloom, has_eight);
    errors found;
    if (eight.size() >= one.fitted.size()) {
      found.add(chosen(bloom, std::not_fn(has_eight)), fitted(eight, one.start, one.fitted).fitted);
    }
    found.print("BLOOM, TP 8 fitted, TP 2 and 4 predicted");
    leave_out("BLOOM", one.name, bloom);
  }
  print_left_out("H100 BF16 (NeMo), one model left out",
                 of_machine("h100",
                            [&](auto const& run) {
                              return is_dense(run) && !run.is_fp8 && run.source == "dgxc";
                            }),
                 omnibal::machines::h100_start,
                 {&machine::matmul_flops_per_second, &machine::node_bytes_per_second});
  leave_out("H100 BF16 and FP8 (NeMo, Megatron-Bridge)", "h100",
            of_machine("h100", [&](auto const& run) {
              return is_dense(run) &&
                     (run.source == "dgxc" || run.source == "nemo2407" || run.source == "bridge");
            }));
  print_left_out("H100 FSDP BF16 (mosaic), one model left out",
                 of_machine("h100_fsdp",
                            [](auto const& run) { return run.source == "mosaic" && !run.is_fp8; }),
                 machine_named("h100_fsdp").start, machine_named("a100_fsdp").fitted);
  leave_out("A100 FSDP (mosaic)", "a100_fsdp",
            of_machine("a100_fsdp", [](auto const& run) { return run.source == "mosaic"; }));
  leave_out("GB200 dense", "gb200", of_machine("gb200", is_dense));
  leave_out("GB300 dense", "gb300", of_machine("gb300", is_dense));
  leave_out("B200 dense", "b200", of_machine("b200", is_dense));
  for (std::string const name : {"gb200", "gb300", "b200", "b300", "h100"}) {
    print_left_out(name + " experts, one model left out",
                   of_machine(name, [](auto const& run) { return run.has_experts; }),
                   machine_named(name).preset, {&machine::exchange_bytes_per_second});
  }
}

/// Kendall's tau-b of predicted and measured seconds, over pairs whose measured seconds differ by
/// more than a share.
double kendall(runs const& given, machine const& on, double share) {
  std::vector<double> predicted;
  for (auto const& run : given) predicted.push_back(predict(run, on));
  double both = 0;
  double first = 0;
  double second = 0;
  for (std::size_t i = 0; i != given.size(); ++i) {
    for (std::size_t j = 0; j != i; ++j) {
      double const a = predicted[i] - predicted[j];
      double const b = given[i].seconds - given[j].seconds;
      if (std::abs(b) < share * given[i].seconds) continue;
      if (a != 0) ++first;
      if (b != 0) ++second;
      if (a * b > 0) ++both;
      if (a * b < 0) --both;
    }
  }
  return first * second > 0 ? both / std::sqrt(first * second) : 0.0;
}

/// The choices of a run in one word: TP, PP, chunks, CP, EP and micro-batch that are not one.
std::string choices_of(published_run const& run) {
  auto const& degrees = run.step.degrees;
  std::string text;
  auto const add = [&](char const* name, std::int64_t value) {
    if (value != 1) text += (text.empty() ? "" : " ") + (name + std::to_string(value));
  };
  add("TP", degrees.tensor);
  add("PP", degrees.pipeline);
  add("VP", run.step.chunks);
  add("CP", degrees.sequence);
  add("EP", degrees.expert);
  add("MBS", run.step.sequences);
  if (run.step.recomputed == omnibal::recompute_choice::full) text += " full";
  return text.empty() ? "all 1" : text;
}

/// Returns the runs of one model, batch and number of ranks, by a title.
std::map<std::string, runs> sweeps_of(runs const& all) {
  std::map<std::string, runs> result;
  for (auto const& run : all) {
    bool const is_sweep = run.source == "vtrain" || run.source == "vtrain1" ||
                          run.source == "bloom" || run.source == "simumax" ||
                          run.source == "bridge";
    if (!is_sweep) continue;
    auto const& degrees = run.step.degrees;
    auto const batch = run.step.sequences * run.step.micro_batches * degrees.data;
    auto const ranks = degrees.data * degrees.sequence * degrees.tensor * degrees.pipeline;
    // BLOOM rounds its batch to its degrees.
    auto const rounded = run.source == "bloom" ? batch / 100 : batch;
    std::string title = run.source + " " + run.model_name;
    if (run.source == "bridge") {
      title += " " + run.machine_name + (run.is_fp8 ? " FP8" : " BF16") + ", tokens " +
               std::to_string(run.step.tokens);
    }
    result[title + ", batch " + std::to_string(rounded) + ", ranks " + std::to_string(ranks)]
        .push_back(run);
  }
  return result;
}

void print_orders(runs const& all) {
  std::printf("\n## Order of the configurations of a sweep\n\n");
  std::printf(
      "| sweep | number | tau | tau of pairs that differ by 5 %% | ranked first | fastest | first "
      "above fastest in %% |\n|---|---|---|---|---|---|---|\n");
  double pairs = 0;
  double sum = 0;
  double clear_sum = 0;
  int within = 0;
  int compared = 0;
  for (auto const& [title, given] : sweeps_of(all)) {
    std::map<std::string, int> different;
    for (auto const& run : given) ++different[choices_of(run)];
    if (given.front().source == "bridge" ? different.size() < 2 : given.size() < 4) continue;
    machine const on = machine_named(given.front().machine_name).preset;
    double const tau = kendall(given, on, 0.0);
    double const clear = kendall(given, on, 0.05);
    // Runs of one configuration have one prediction; the fastest release counts.
    auto const best = *std::ranges::min_element(
        given, {}, [&](auto const& run) { return std::pair(predict(run, on), run.seconds); });
    auto const fastest = *std::ranges::min_element(given, {}, &published_run::seconds);
    double const weight = static_cast<double>(given.size() * (given.size() - 1)) / 2;
    if (given.front().source != "bridge") {
      pairs += weight;
      sum += weight * tau;
      clear_sum += weight * clear;
    }
    double const above = 100 * (best.seconds / fastest.seconds - 1);
    ++compared;
    if (above <= 3) ++within;
    std::printf("| %s | %zu | %.2f | %.2f | %s | %s | %.1f |\n", title.c_str(), given.size(), tau,
                clear, choices_of(best).c_str(), choices_of(fastest).c_str(), above);
  }
  if (pairs > 0) {
    std::printf("| all but bridge, weighted by pairs | | %.2f | %.2f | | | |\n", sum / pairs,
                clear_sum / pairs);
  }
  if (compared == 0) return;
  std::printf("\nThe first configuration is within 3 %% of the fastest in %d of %d sweeps.\n",
              within, compared);
}

double gib(std::int64_t bytes) { return static_cast<double>(bytes) / (1 << 30); }

void print_peaks(runs const& all) {
  std::printf("\n## Peak memory as processes measured it\n\n");
  std::printf(header);
  std::map<std::string, errors> found;
  for (auto const& run : all) {
    if (run.peak_gib <= 0) continue;
    auto const peaks =
        omnibal::predict_step(run.model, run.step, machine_named(run.machine_name).preset)
            .peak_bytes;
    double const peak = gib(*std::ranges::max_element(peaks));
    found[run.source + (run.has_experts ? ", experts" : "")].values.push_back(
        100 * (peak / run.peak_gib - 1));
  }
  for (auto const& [source, one] : found) one.print(source);
}

/// The figures of Korthikanti et al. about the first stage.
void print_memory(std::string const& path) {
  std::printf("\n## Memory of Korthikanti et al.\n\n");
  std::printf(
      "| model | recomputation | sequence parallel | state GiB | error in %% | activations GiB | "
      "error |\n|---|---|---|---|---|---|---|\n");
  errors state;
  errors kept;
  std::map<std::string, double> whole;
  for (auto const& row : read_table(path)) {
    omnibal::transformer const layer{.hidden = row.whole("hidden"),
                                     .heads = row.whole("heads"),
                                     .mlp = 4 * row.whole("hidden"),
                                     .feed_forward = omnibal::mlp_kind::plain,
                                     .norm = omnibal::norm_kind::layer,
                                     .kernel = omnibal::attention_kernel::unfused,
                                     .qkv_bias = true,
                                     .output_bias = true,
                                     .mlp_bias = true,
                                     .dropout = true};
    bool const is_split = row.whole("seq_parallel") != 0;
    auto const choice = row.text("recompute") == "full" ? omnibal::recompute_choice::full
                        : row.text("recompute") == "selective"
                            ? omnibal::recompute_choice::selective
                            : omnibal::recompute_choice::none;
    omnibal::mixed_language_model model;
    constexpr std::int64_t vocabulary = 51'200;
    model.input = {.vocabulary = vocabulary, .hidden = layer.hidden};
    model.runs = {{row.whole("layers"), layer}};
    model.output = {
        .vocabulary = vocabulary, .hidden = layer.hidden, .weights = omnibal::head_weights::tied};
    omnibal::training_step const step{
        .sequences = row.whole("mbs"),
        .tokens = row.whole("seq_len"),
        .micro_batches = 8 * row.whole("pp"),
        .degrees = {.tensor = row.whole("tp"),
                    .norms =
                        is_split ? omnibal::norm_regions::split : omnibal::norm_regions::replicated,
                    .sharding = omnibal::sharded_state::nothing,
                    .pipeline = row.whole("pp")},
        .chunks = row.whole("vpp"),
        .recomputed = choice};
    auto const peak =
        omnibal::predict_step(model, step, omnibal::machines::a100_infiniband).peak_bytes[0];
    auto const cost =
        layer({.documents = omnibal::equal_sequences({step.sequences, step.tokens})}, step.degrees);
    auto const embedded = model.input({}, step.degrees);
    std::int64_t const per_stage = row.whole("layers") / step.degrees.pipeline;
    double const state_gib = gib(per_stage * cost.state_bytes() + embedded.state_bytes());
    double const kept_gib = gib(peak) - state_gib - gib(cost[choice].transient_bytes);
    double const given_state = row.number("weights_optimizer_gib");
    double const given_kept = row.number("activations_gib");
    double const share = row.number("activations_pct_of_none");
    auto const name = row.text("model");
    if (choice == omnibal::recompute_choice::none && !is_split) whole[name] = given_kept;
    double const published = given_kept > 0 ? given_kept : whole[name] * share / 100;
    double const kept_error = 100 * (kept_gib / published - 1);
    kept.values.push_back(kept_error);
    std::printf("| %s | %s | %s | ", name.c_str(), row.text("recompute").c_str(),
                is_split ? "yes" : "no");
    if (given_state > 0) {
      double const error = 100 * (state_gib / given_state - 1);
      state.values.push_back(error);
      std::printf("%.1f | %+.1f | ", state_gib, error);
    } else {
      std::printf("| | ");
    }
    std::printf("%.1f | %+.1f |\n", kept_gib, kept_error);
  }
  std::printf("\n");
  std::printf(header);
  state.print("parameters and optimizer");
  kept.print("activations");
}

void print_fits(runs const& all) {
  std::printf("\n## Constants that are fitted to all dense runs of a machine\n\n");
  std::printf("| machine | constant | value | error in %% | inflation | at a bound |\n");
  std::printf("|---|---|---|---|---|---|\n");
  auto const print = [](std::string const& name, omnibal::machine_fit const& fit) {
    for (auto const& one : fit.constants) {
      std::printf("| %s | %s | %.4g | %.1f | %.1f | %s |\n", name.c_str(),
                  std::string(one.name).c_str(), one.value, 100 * one.relative_error, one.inflation,
                  one.is_at_bound ? "yes" : "no");
    }
    std::printf("| %s | mean error %.1f %%, largest %.1f %% | | | | |\n", name.c_str(),
                100 * fit.mean_error, 100 * fit.largest_error);
  };
  auto const is_fitted = [](published_run const& run) {
    return run.source != "sc21" && run.source != "seqsel" && run.source != "mlm-h100" &&
           run.source != "longseq" && run.source != "maxtext" && run.source != "fms" &&
           run.source != "bridge-skill" && run.source != "automodel" &&
           !(run.source == "mosaic" && run.is_fp8);
  };
  for (auto const& one : all_machines()) {
    auto const given = chosen(all, [&](auto const& run) {
      return run.machine_name == one.name && is_fitted(run) && !run.has_experts;
    });
    machine on = one.start;
    if (!one.fitted.empty() && given.size() >= one.fitted.size()) {
      auto const fit = fitted(given, on, one.fitted);
      print(one.name, fit);
      on = fit.fitted;
    }
    auto const sparse = chosen(all, [&](auto const& run) {
      return run.machine_name == one.name && is_fitted(run) && run.has_experts;
    });
    if (sparse.size() > 2) {
      print(one.name, fitted(sparse, on, {&machine::exchange_bytes_per_second}));
    }
  }
}

}  // namespace

int main(int argc, char** argv) try {
  std::string path;
  std::string memory;
  bool fits = false;
  bool each = false;
  for (std::string_view const word : std::span(argv, static_cast<std::size_t>(argc)).subspan(1)) {
    if (word == "--fit") {
      fits = true;
    } else if (word == "--runs") {
      each = true;
    } else if (path.empty()) {
      path = word;
    } else {
      memory = word;
    }
  }
  if (path.empty()) {
    std::fprintf(stderr, "usage: step_model RUNS.tsv [MEMORY.tsv] [--fit] [--runs]\n");
    return EXIT_FAILURE;
  }
  runs all;
  std::map<std::string, int> refused;
  for (auto const& row : read_table(path)) {
    auto const reason = refusal(row);
    if (!reason.empty()) {
      ++refused[reason];
      continue;
    }
    try {
      auto const run = run_of(row);
      static_cast<void>(predict(run, omnibal::machines::a100_infiniband));
      all.push_back(run);
    } catch (std::invalid_argument const& error) {
      ++refused[error.what()];
    }
  }
  std::printf("%zu runs are predicted.\n", all.size());
  for (auto const& [reason, count] : refused)
    std::printf("%d left out: %s\n", count, reason.c_str());
  if (fits) print_fits(all);
  print_presets(all, each);
  print_splits(all);
  print_orders(all);
  print_peaks(all);
  if (!memory.empty()) print_memory(memory);
  return EXIT_SUCCESS;
} catch (std::exception const& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return EXIT_FAILURE;
}
