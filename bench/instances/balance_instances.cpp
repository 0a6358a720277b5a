// SPDX-License-Identifier: Apache-2.0
/// \file
/// Balances published instances of P||Cmax, and of bin packing with the least number of parts under
/// strict caps, which a folder of the user's holds, and compares parts and bounds with what is
/// known of them.
///
///   balance_instances FOLDER [fast|normal|thorough]
///
/// Each file in the folder and below is an instance, each folder with files a set. A file has two
/// numbers and a list: where the second is the length of the list, machines and jobs with their
/// times, else the number of items and a capacity with their sizes, as in BPPLIB. `optima.tsv` in
/// FOLDER may have columns `file`, relative to it, and `optimum`, the least makespan or number of
/// bins; -1 or nothing where that is not known.
///
/// Jobs go through `lpt` and `refine_parts`, whose splits are 256, 2048 or 16384. Items go through
/// `balance_under_capacity`, in as many parts as the optimum, and must be found there, and in one
/// less, where they never may. For each set it prints how many are optimal or found, how many lower
/// bounds are equal to the optimum, and the time. A contradiction is printed as well, and the
/// program then ends with 1.

#include "instance_files.hpp"

#include <omnibal/balance/balance_under_capacity.hpp>
#include <omnibal/balance/lpt.hpp>
#include <omnibal/balance/refine_parts.hpp>
#include <omnibal/group_loads.hpp>
#include <omnibal/pack/packing_bound.hpp>
#include <omnibal/solve_status.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace {

namespace fs = std::filesystem;

struct instance {
  /// The makespan is to be short, else the parts few.
  bool has_machines = false;
  std::int64_t machines_or_capacity = 0;
  std::vector<std::int64_t> amounts;
};

struct outcome {
  bool is_optimal = false;
  bool is_bound_optimal = false;
  double seconds = 0;
  /// Empty, or what cannot be.
  std::string contradiction;
};

instance read_instance(fs::path const& path) {
  std::ifstream file(path);
  std::int64_t const first = bench::next_number(file, path);
  std::int64_t const second = bench::next_number(file, path);
  instance result;
  for (std::int64_t amount = 0; file >> amount;) result.amounts.push_back(amount);
  auto const count = static_cast<std::int64_t>(result.amounts.size());
  result.has_machines = count == second && count != first;
  result.machines_or_capacity = result.has_machines ? first : second;
  if (!result.has_machines && count != first) {
    throw std::runtime_error(path.string() + " has a list of neither of its lengths");
  }
  return result;
}

/// The largest load that no parts are below: the mean, the largest time, two of the longest.
std::int64_t makespan_bound(std::vector<std::int64_t> times, std::int64_t machines) {
  std::sort(times.begin(), times.end(), std::greater{});
  std::int64_t sum = 0;
  for (std::int64_t const time : times) sum += time;
  std::int64_t bound = (sum + machines - 1) / machines;
  auto const parts = static_cast<std::size_t>(machines);
  if (!times.empty()) bound = std::max(bound, times.front());
  return times.size() > parts ? std::max(bound, times[parts - 1] + times[parts]) : bound;
}

outcome shorten(instance const& of, std::int64_t optimum, omnibal::effort effort) {
  constexpr std::size_t splits[] = {256, 2048, 16384};
  auto const machines = static_cast<std::size_t>(of.machines_or_capacity);
  double const begin = bench::processor_seconds();
  auto const parts =
      omnibal::refine_parts(of.amounts, omnibal::lpt(of.amounts, machines), std::identity{},
                            {.splits = splits[static_cast<std::size_t>(effort)]});
  outcome result;
  result.seconds = bench::processor_seconds() - begin;
  std::int64_t makespan = 0;
  for (auto const& load : omnibal::group_loads(parts, of.amounts, std::identity{})) {
    makespan = std::max(makespan, load[0]);
  }
  std::int64_t const bound = makespan_bound(of.amounts, of.machines_or_capacity);
  result.is_optimal = makespan == optimum;
  result.is_bound_optimal = bound == optimum;
  if (makespan < bound || (optimum >= 0 && (makespan < optimum || bound > optimum))) {
    result.contradiction =
        "makespan " + std::to_string(makespan) + ", bound " + std::to_string(bound);
  }
  return result;
}

outcome fill(instance const& of, std::int64_t optimum, omnibal::effort effort) {
  outcome result;
  if (optimum < 1) return result;
  auto const try_parts = [&](std::int64_t parts) {
    return omnibal::balance_under_capacity(of.amounts, static_cast<std::size_t>(parts),
                                           std::identity{}, std::identity{},
                                           of.machines_or_capacity, {.effort = effort});
  };
  double const begin = bench::processor_seconds();
  auto const found = try_parts(optimum);
  result.seconds = bench::processor_seconds() - begin;
  result.is_optimal = found.status == omnibal::solve_status::solved;
  auto const bound = static_cast<std::int64_t>(found.parts_needed);
  result.is_bound_optimal = bound == optimum;
  bool const is_below =
      optimum > 1 && try_parts(optimum - 1).status == omnibal::solve_status::solved;
  bool const is_refused = found.status == omnibal::solve_status::infeasible;
  bool const is_above = result.is_optimal && found.largest_load > of.machines_or_capacity;
  if (is_below) result.contradiction = "one part less was found";
  if (is_refused || bound > optimum) result.contradiction = "bound " + std::to_string(bound);
  if (is_above) result.contradiction = "a load of " + std::to_string(found.largest_load);
  return result;
}

/// The sums of a set.
struct totals {
  std::size_t instances = 0;
  std::size_t with_optimum = 0;
  std::size_t optimal = 0;
  std::size_t bounds_optimal = 0;
  double seconds = 0;
  double longest = 0;
};

void print(std::map<std::string, totals> const& sets) {
  std::printf(
      "| set | instances | optimal | bounds optimal | ms each | ms at most |\n"
      "|---|---|---|---|---|---|\n");
  for (auto const& [name, set] : sets) {
    std::printf("| %s | %zu | %zu of %zu | %zu of %zu | %.3f | %.2f |\n", name.c_str(),
                set.instances, set.optimal, set.with_optimum, set.bounds_optimal, set.with_optimum,
                1e3 * set.seconds / static_cast<double>(set.instances), 1e3 * set.longest);
  }
}

int run(fs::path const& folder, omnibal::effort effort) {
  auto const optima = bench::read_optima(folder / "optima.tsv");
  std::map<std::string, totals> sets;
  bool is_consistent = true;
  for (auto const& file : bench::instance_files(folder)) {
    if (file.extension() == ".vbp") continue;
    std::string const name = file.lexically_relative(folder).generic_string();
    auto const known = optima.find(name);
    std::int64_t const optimum = known == optima.end() ? -1 : known->second.optimum;
    instance const of = read_instance(file);
    outcome const found =
        of.has_machines ? shorten(of, optimum, effort) : fill(of, optimum, effort);
    totals& set = sets[file.parent_path().lexically_relative(folder).generic_string()];
    ++set.instances;
    set.seconds += found.seconds;
    set.longest = std::max(set.longest, found.seconds);
    if (optimum >= 0) {
      ++set.with_optimum;
      if (found.is_optimal) ++set.optimal;
      if (found.is_bound_optimal) ++set.bounds_optimal;
    }
    if (found.contradiction.empty()) continue;
    is_consistent = false;
    std::printf("CONTRADICTION: %s: %s, optimum %lld\n", name.c_str(), found.contradiction.c_str(),
                static_cast<long long>(optimum));
  }
  print(sets);
  return is_consistent ? 0 : 1;
}

omnibal::effort effort_named(std::string_view word) {
  if (word == "fast") return omnibal::effort::fast;
  if (word == "normal") return omnibal::effort::normal;
  if (word == "thorough") return omnibal::effort::thorough;
  throw std::runtime_error("the effort is fast, normal or thorough");
}

}  // namespace

int main(int count, char** words) {
  if (count != 2 && count != 3) {
    std::fprintf(stderr, "usage: balance_instances FOLDER [fast|normal|thorough]\n");
    return 2;
  }
  try {
    return run(words[1], count == 3 ? effort_named(words[2]) : omnibal::effort::normal);
  } catch (std::exception const& error) {
    std::fprintf(stderr, "balance_instances: %s\n", error.what());
    return 2;
  }
}
