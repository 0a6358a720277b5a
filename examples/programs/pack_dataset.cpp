// SPDX-License-Identifier: Apache-2.0
/// \file
/// Reads the lengths of a data set, packs its samples into groups under a capacity, schedules the
/// groups on ranks, and writes the plan: `pack_dataset --help`.

#include "options/length_options.hpp"
#include "options/pack_options.hpp"
#include "pictures/packing_pictures.hpp"
#include "plans/epoch_cost.hpp"
#include "plans/measure_batches.hpp"
#include "plans/pack_samples.hpp"
#include "plans/schedule_groups.hpp"
#include "readers/dataset.hpp"
#include "readers/progress.hpp"
#include "readers/synthetic.hpp"
#include "reports/balance_report.hpp"
#include "reports/capacity_report.hpp"
#include "reports/describe.hpp"
#include "reports/plan_writer.hpp"
#include "reports/staged_files.hpp"
#include "reports/table.hpp"

#include <omnibal/group_loads.hpp>
#include <omnibal/pack/capacity_warnings.hpp>

#include <chrono>
#include <exception>
#include <filesystem>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using namespace examples;

/// Seconds since the last call, or since it was made.
class stopwatch {
 public:
  double lap() {
    auto const now = std::chrono::steady_clock::now();
    std::chrono::duration<double> const passed = now - last_;
    last_ = now;
    return passed.count();
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

dataset load(pack_options const& options, progress& shown) {
  if (options.lengths.files.empty()) {
    return synthetic_lengths(options.synthetic_samples, options.seed);
  }
  return read_lengths(options.lengths, shown);
}

/// Fails before the work rather than after it, and never replaces an input by an output.
void check_outputs(pack_options const& options) {
  namespace fs = std::filesystem;
  if (fs::exists(options.output) && !fs::is_directory(options.output)) {
    throw std::runtime_error("--output: " + options.output.string() + " is not a directory");
  }
  auto const status = fs::symlink_status(options.svg);
  if (!fs::exists(status)) return;
  if (!fs::is_regular_file(status)) {
    throw std::runtime_error("--svg: " + options.svg.string() + " is not a regular file");
  }
  for (std::string const& input : options.lengths.files) {
    if (fs::exists(input) && fs::equivalent(input, options.svg)) {
      throw std::runtime_error("--svg: " + options.svg.string() + " is an input");
    }
  }
}

void print_files(pack_options const& options, std::vector<std::string> const& names) {
  std::cout << "\nPlan in " << options.output.string() << ":\n ";
  for (std::string const& name : names) std::cout << ' ' << name;
  std::cout << '\n';
  if (!options.svg.empty()) std::cout << "Picture: " << options.svg.string() << '\n';
  if (options.output_text != output_kind::details) {
    std::cout << "Add --details for all figures.\n";
  }
  if (options.lengths.files.empty()) {
    std::cout << "Your own file: pack_dataset lengths.jsonl --text --token-field length\n";
  }
}

void run(pack_options options) {
  progress shown(options.progress_line);
  stopwatch watch;
  phase_seconds seconds;
  if (options.task == task_kind::pack) check_outputs(options);

  dataset const data = load(options, shown);
  seconds.reading = watch.lap();
  settle(options, data.kind);
  if (options.task == task_kind::describe) {
    shown.end();
    describe(data, std::cout);
    if (!options.typed_capacity.empty()) describe_oversized(data, options.capacity, std::cout);
    return;
  }

  std::optional<chosen_capacity> choice;
  if (options.target_batch > 0) {
    shown.begin("choosing a capacity");
    choice = choose_capacity(data, options);
    set_capacity(options, choice->capacity);
    seconds.choosing = watch.lap();
  } else if (options.typed_capacity.empty()) {
    set_capacity(options, {1, context_length(data, options)});
  }
  shown.begin("packing " + counted(data.samples.size()) + " samples");
  check_sums(data, options);
  omnibal::packing const result = pack_samples(data, options);
  check_oversized(data, options, result);
  seconds.packing = watch.lap();

  auto const loads =
      omnibal::group_loads(result.groups.view(), data.samples, packed_demand(options));
  watch.lap();
  shown.begin("scheduling " + counted(loads.size()) + " groups");
  measured_steps const scheduled = schedule_groups(options, loads);
  seconds.scheduling = watch.lap();
  measured_batches before;
  measured_batches after;
  bool const quiet = options.output_text == output_kind::quiet;
  if (!quiet || !options.svg.empty()) {
    shown.begin("measuring");
    before = measure_random(data, options, result);
    after = measure_packed(data, options, result, loads,
                           dealing_order(loads.size(), options.seed, options.epoch));
  }
  watch.lap();

  shown.begin("writing " + options.output.string());
  staged_files files;
  if (!options.svg.empty()) {
    files.write(options.svg, [&](std::ostream& out) {
      write_pictures(data, options, result.oversized.size(), before, after, scheduled, out);
    });
  }
  auto const names = write_plan(files, data, options, result, loads, scheduled);
  files.commit();
  seconds.writing = watch.lap();
  shown.end();
  if (quiet) {
    std::string const left_out = left_out_text(data, options, result);
    if (!left_out.empty()) std::cerr << "pack_dataset: warning: " << left_out << '\n';
    return;
  }

  print_summary(data, options, result, std::cout);
  auto const cost_of = [&](batch_layout layout) {
    measured_batches const filled = measure_filled(data, options, result, layout);
    return cost_of_epoch(dealing_order(filled.loads.size(), options.seed), filled, options);
  };
  print_gain(options,
             {.padded = cost_of(batch_layout::padded),
              .concatenated = cost_of(batch_layout::concatenated),
              .planned = cost_of_epoch(scheduled.steps.cells().items(), after, options)},
             std::cout);
  if (data.kind != sample_kind::text) {
    print_warnings(
        omnibal::capacity_warnings(data.samples, packed_demand(options), options.capacity),
        std::cout);
  }
  if (options.output_text == output_kind::details) {
    std::cout << '\n';
    print_report(options, result, before.figures, after.figures, seconds, std::cout);
    print_schedule(options, deal_at_random(options, loads), scheduled, seconds, std::cout);
    if (choice) print_choice(*choice, options, std::cout);
  }
  print_files(options, names);
}

}  // namespace

int main(int count, char** words) {
  try {
    auto const options = parse_command_line(count, words);
    if (options) run(*options);
    std::cout.flush();
    if (!std::cout) throw std::runtime_error("cannot write to the standard output");
    return 0;
  } catch (std::exception const& error) {
    std::cerr << "pack_dataset: error: " << error.what() << '\n';
    return 1;
  }
}
