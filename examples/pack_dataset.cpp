/// \file
/// Reads the lengths of a data set, packs its samples into groups under a capacity, deals the
/// groups to ranks, and writes the plan: `pack_dataset --help`.

#include "support/balance_report.hpp"
#include "support/dataset.hpp"
#include "support/describe.hpp"
#include "support/pack_options.hpp"
#include "support/pack_samples.hpp"
#include "support/plan_writer.hpp"
#include "support/progress.hpp"
#include "support/read_lengths.hpp"
#include "support/synthetic.hpp"
#include "support/table.hpp"

#include <omnibal/group_loads.hpp>

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
  if (options.inputs.empty()) {
    return synthetic_lengths(options.synthetic_samples, options.seed);
  }
  dataset data;
  for (auto const& path : options.inputs) {
    read_lengths(path, options.format, options.fields, shown, data);
  }
  return data;
}

/// Fails before the work rather than after it.
void check_output(std::filesystem::path const& directory) {
  if (std::filesystem::exists(directory) && !std::filesystem::is_directory(directory)) {
    throw std::runtime_error("--output: " + directory.string() + " is not a directory");
  }
}

void print_files(std::filesystem::path const& directory, std::vector<std::string> const& names) {
  std::cout << "\nPlan in " << directory.string() << ":";
  for (std::string const& name : names) std::cout << ' ' << name;
  std::cout << '\n';
}

void run(pack_options const& options) {
  progress shown(options.progress_line);
  stopwatch watch;
  phase_seconds seconds;
  if (options.task == task_kind::pack) check_output(options.output);

  dataset const data = load(options, shown);
  seconds.reading = watch.lap();
  if (options.task == task_kind::describe) {
    shown.end();
    return describe(data, options.capacity, std::cout);
  }

  shown.begin("packing " + counted(data.samples.size()) + " samples");
  check_sums(data, options);
  omnibal::packing const result = pack_samples(data, options);
  seconds.packing = watch.lap();

  shown.begin("writing " + options.output.string());
  auto const loads =
      omnibal::group_loads(result.groups.view(), data.samples, packed_demand(options));
  auto const order = dealing_order(result.groups.size(), options.seed);
  auto const names = write_plan(data, options, result, loads, order);
  seconds.writing = watch.lap();
  if (options.output_text == output_kind::quiet) return;

  shown.begin("measuring");
  auto const before = measure_random(data, options, result);
  auto const after = measure_packed(data, options, result, loads, order);
  shown.end();
  std::cout << counted(data.samples.size()) << " samples from ";
  if (data.sources.size() == 1) {
    std::cout << data.sources.front().name << "\n\n";
  } else {
    std::cout << data.sources.size() << " files\n\n";
  }
  print_report(options, result, before, after, seconds, std::cout);
  print_files(options.output, names);
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
