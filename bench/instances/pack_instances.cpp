// SPDX-License-Identifier: Apache-2.0
/// \file
/// Packs published instances of bin packing and vector packing, which a folder of the user's holds,
/// and compares groups and bounds with what is known of them.
///
///   pack_instances FOLDER [SECONDS]
///
/// Each file in the folder and below is an instance, each folder with files a set. A file whose
/// name ends in .vbp has kinds of demand, a capacity for each, a number of items, and for each item
/// its demands and how often it occurs; any other but .tsv and .md the number of items, the
/// capacity and the sizes, as in BPPLIB. `optima.tsv` in FOLDER may have columns `file`, relative
/// to it, `optimum` and `best`, a packing that was published; -1 or nothing where that is not
/// known.
///
/// For each set it prints the sums of these, of the groups after SECONDS of processor time for each
/// instance (0.1) and of the lower bounds, how many are equal to the optimum, how many groups more
/// than the optimum those have together of which it is known, and the time. The bounds are three:
/// at normal effort, at thorough effort without column generation, and with it. A contradiction is
/// printed as well, and the program then ends with 1.

#include "instance_files.hpp"

#include <omnibal/pack/best_packing.hpp>
#include <omnibal/pack/improve_packing.hpp>
#include <omnibal/pack/packing_bound.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using bench::instance_files;
using bench::known;
using bench::next_number;
using bench::processor_seconds;
using bench::read_optima;
namespace fs = std::filesystem;

struct instance {
  std::vector<std::int64_t> capacity;
  /// The demands of all items, one after the other.
  std::vector<std::int64_t> demands;
};

/// The bounds that are compared, each at least as large as the one before.
constexpr omnibal::packing_bound_options bounds[] = {
    {.effort = omnibal::effort::normal},
    {.effort = omnibal::effort::thorough, .pattern_steps = 0},
    {.effort = omnibal::effort::thorough},
};
constexpr std::size_t bound_count = std::size(bounds);

struct outcome {
  std::size_t groups = 0;
  double seconds = 0;
  std::size_t bound[bound_count] = {};
  double bound_seconds[bound_count] = {};
};

instance read_instance(fs::path const& path) {
  std::ifstream file(path);
  bool const has_kinds = path.extension() == ".vbp";
  std::int64_t items = has_kinds ? 0 : next_number(file, path);
  auto const kinds = static_cast<std::size_t>(has_kinds ? next_number(file, path) : 1);
  if (kinds > 64) throw std::runtime_error(path.string() + " has more than 64 kinds of demand");
  instance result;
  for (std::size_t r = 0; r != kinds; ++r) result.capacity.push_back(next_number(file, path));
  if (has_kinds) items = next_number(file, path);
  std::vector<std::int64_t> item(kinds);
  for (std::int64_t i = 0; i < items; ++i) {
    for (auto& amount : item) amount = next_number(file, path);
    for (auto left = has_kinds ? next_number(file, path) : 1; left > 0; --left) {
      result.demands.insert(result.demands.end(), item.begin(), item.end());
    }
  }
  return result;
}

template <std::size_t R>
outcome pack(instance const& of, double seconds) {
  omnibal::resources<R> capacity{};
  std::copy(of.capacity.begin(), of.capacity.end(), std::begin(capacity.amounts));
  std::vector<omnibal::resources<R>> samples(of.demands.size() / R);
  for (std::size_t i = 0; i != of.demands.size(); ++i) samples[i / R][i % R] = of.demands[i];
  double const begin = processor_seconds();
  auto const start = omnibal::best_packing(samples, std::identity{}, capacity);
  omnibal::improve_packing_options const options{.passes = static_cast<std::size_t>(-1),
                                                 .even_passes = 0};
  auto const packed =
      omnibal::improve_packing(samples, std::identity{}, capacity, start, options,
                               [&](auto const&) { return processor_seconds() < begin + seconds; });
  outcome result;
  result.groups = packed.groups.size() + packed.oversized.size();
  result.seconds = processor_seconds() - begin;
  for (std::size_t i = 0; i != bound_count; ++i) {
    double const before = processor_seconds();
    result.bound[i] = packed.oversized.size() +
                      omnibal::packing_bound(samples, std::identity{}, capacity, bounds[i]);
    result.bound_seconds[i] = processor_seconds() - before;
  }
  return result;
}

outcome pack(instance const& of, double seconds) {
  switch (of.capacity.size()) {
    case 1: return pack<1>(of, seconds);
    case 2: return pack<2>(of, seconds);
    case 3: return pack<3>(of, seconds);
    case 5: return pack<5>(of, seconds);
    case 10: return pack<10>(of, seconds);
    default: throw std::runtime_error("only 1, 2, 3, 5 or 10 kinds of demand are compiled in");
  }
}

/// The sums of a set.
struct totals {
  std::size_t instances = 0;
  std::size_t with_optimum = 0;
  std::int64_t optimum = 0;
  std::size_t with_best = 0;
  std::int64_t best = 0;
  std::size_t groups = 0;
  std::size_t groups_optimal = 0;
  /// More than the optimum, where that is known.
  std::int64_t groups_above = 0;
  double seconds = 0;
  std::size_t bound[bound_count] = {};
  std::size_t bounds_optimal[bound_count] = {};
  double bound_seconds[bound_count] = {};
};

/// Adds an instance to its set; false for a contradiction, which is printed.
bool add(totals& set, std::string const& name, known const& of, outcome const& found) {
  auto const groups = static_cast<std::int64_t>(found.groups);
  auto const bound =
      static_cast<std::int64_t>(*std::max_element(found.bound, found.bound + bound_count));
  ++set.instances;
  set.groups += found.groups;
  set.seconds += found.seconds;
  for (std::size_t i = 0; i != bound_count; ++i) {
    set.bound[i] += found.bound[i];
    set.bound_seconds[i] += found.bound_seconds[i];
    if (static_cast<std::int64_t>(found.bound[i]) == of.optimum) ++set.bounds_optimal[i];
  }
  if (of.optimum >= 0) {
    ++set.with_optimum;
    set.optimum += of.optimum;
    set.groups_above += groups - of.optimum;
    if (groups == of.optimum) ++set.groups_optimal;
  }
  if (of.best >= 0) {
    ++set.with_best;
    set.best += of.best;
  }
  bool const is_below = of.optimum >= 0 && groups < of.optimum;
  bool const is_above = (of.optimum >= 0 && bound > of.optimum) ||
                        (of.best >= 0 && bound > of.best) || bound > groups;
  if (is_below || is_above) {
    std::printf("CONTRADICTION: %s: groups %lld, bound %lld, optimum %lld, best %lld\n",
                name.c_str(), static_cast<long long>(groups), static_cast<long long>(bound),
                static_cast<long long>(of.optimum), static_cast<long long>(of.best));
  }
  return !is_below && !is_above;
}

void print(std::map<std::string, totals> const& sets) {
  std::printf(
      "| set | instances | with optimum | optimum | best | groups | of them optimal | above | s "
      "each | "
      "bound, normal | optimal | ms each | thorough, no patterns | optimal | ms each | "
      "thorough | optimal | ms each "
      "|\n|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|"
      "---|---|---|\n");
  auto const sum_of = [](totals const& set, std::size_t number, std::int64_t sum) {
    return number == set.instances ? std::to_string(sum) : std::string("open");
  };
  for (auto const& [name, set] : sets) {
    auto const instances = static_cast<double>(set.instances);
    std::printf("| %s | %zu | %zu | %s | %s | %zu | %zu | %lld | %.4f |", name.c_str(),
                set.instances, set.with_optimum, sum_of(set, set.with_optimum, set.optimum).c_str(),
                sum_of(set, set.with_best, set.best).c_str(), set.groups, set.groups_optimal,
                static_cast<long long>(set.groups_above), set.seconds / instances);
    for (std::size_t i = 0; i != bound_count; ++i) {
      std::printf(" %zu | %zu | %.3f |", set.bound[i], set.bounds_optimal[i],
                  1e3 * set.bound_seconds[i] / instances);
    }
    std::printf("\n");
  }
}

int run(fs::path const& folder, double seconds) {
  auto const files = instance_files(folder);
  auto const optima = read_optima(folder / "optima.tsv");
  std::map<std::string, totals> sets;
  bool is_consistent = true;
  for (auto const& file : files) {
    std::string const name = file.lexically_relative(folder).generic_string();
    auto const of = optima.find(name);
    outcome const found = pack(read_instance(file), seconds);
    totals& set = sets[file.parent_path().lexically_relative(folder).generic_string()];
    is_consistent =
        add(set, name, of == optima.end() ? known{} : of->second, found) && is_consistent;
  }
  print(sets);
  return is_consistent ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
  if (count != 2 && count != 3) {
    std::fprintf(stderr, "usage: pack_instances FOLDER [SECONDS]\n");
    return 2;
  }
  try {
    return run(words[1], count == 3 ? std::stod(words[2]) : 0.1);
  } catch (std::exception const& error) {
    std::fprintf(stderr, "pack_instances: %s\n", error.what());
    return 2;
  }
}
