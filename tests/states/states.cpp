// SPDX-License-Identifier: Apache-2.0
// What a run leaves in files, written on one processor and read on another: the states of samplers,
// packers and queues, digests and plans.
//
// usage: states write|read FOLDER `write` writes numbers.txt, the members of the states as numbers,
// with what comes next; states.bin, the bytes of the states; and files of plans. `read` continues
// from the numbers and demands what the writer had next. It continues from the bytes if the writer
// stored its bytes in the same order, and otherwise demands an error for each state. It prints what
// it did.

#include <omnibal/context/context_plan.hpp>
#include <omnibal/context/deferral_queue.hpp>
#include <omnibal/exchange/make_plan.hpp>
#include <omnibal/hierarchy/level_packing.hpp>
#include <omnibal/pack/online_packer.hpp>
#include <omnibal/pipeline/interleaved_1f1b.hpp>
#include <omnibal/pipeline/write_schedule.hpp>
#include <omnibal/plan/pipeline_plan.hpp>
#include <omnibal/plan/write_plan.hpp>
#include <omnibal/sample/epoch_sampler.hpp>
#include <omnibal/sample/level_sampler.hpp>
#include <omnibal/sample/mixture.hpp>
#include <omnibal/sample/step_sampler.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace {

using words = std::vector<std::uint64_t>;

constexpr omnibal::shard place{.ranks = 3, .rank = 1};

std::vector<std::int64_t> some_loads() {
  std::vector<std::int64_t> loads;
  for (std::int64_t i = 0; i != 100; ++i) loads.push_back(1 + i * i * 7919 % 1000);
  return loads;
}

omnibal::level_packing some_levels() {
  omnibal::level_packing packed;
  packed.levels = {{{.length = 1000}, 0, 40, 0}, {{.length = 4000, .sequence = 2}, 40, 60, 0}};
  std::vector<std::uint32_t> offsets{0};
  std::vector<std::uint32_t> items;
  for (std::uint32_t i = 0; i != 100; ++i) {
    items.push_back(i);
    offsets.push_back(i + 1);
  }
  packed.groups = omnibal::grouping(offsets, items);
  return packed;
}

// One kind of state each: `name`, `type`, the state in the middle of a run, and what comes next.

struct epoch_case {
  static constexpr char const* name = "epoch_sampler";
  using type = omnibal::sampler_state;
  static constexpr omnibal::epoch_sampler_options options{.seed = 5, .batch = 4};

  static type state() {
    omnibal::epoch_sampler sampler(1001, place, options);
    for (int i = 0; i != 20; ++i) static_cast<void>(sampler.next());
    return sampler.state();
  }
  static words next(type const& from) {
    omnibal::epoch_sampler sampler(1001, place, options, from);
    words result;
    for (int i = 0; i != 100; ++i) {
      for (std::uint64_t const item : sampler.next()) result.push_back(item);
    }
    return result;
  }
};

struct step_case {
  static constexpr char const* name = "step_sampler";
  using type = omnibal::sampler_state;
  static constexpr omnibal::schedule_steps_options options{.seed = 5};

  static type state() {
    auto const loads = some_loads();
    omnibal::step_sampler sampler(loads, place, options);
    for (int i = 0; i != 20; ++i) static_cast<void>(sampler.next());
    return sampler.state();
  }
  static words next(type const& from) {
    auto const loads = some_loads();
    omnibal::step_sampler sampler(loads, place, options, from);
    words result;
    for (int i = 0; i != 50; ++i) {
      for (std::uint64_t const item : sampler.next()) result.push_back(item);
    }
    return result;
  }
};

struct level_case {
  static constexpr char const* name = "level_sampler";
  using type = omnibal::sampler_state;
  static constexpr omnibal::shard ranks{.ranks = 4, .rank = 1};
  static constexpr omnibal::level_sampler_options options{.schedule = {.seed = 5}};

  static type state() {
    auto const packed = some_levels();
    omnibal::level_sampler sampler(packed, some_loads(), ranks, options);
    for (int i = 0; i != 10; ++i) static_cast<void>(sampler.next());
    return sampler.state();
  }
  static words next(type const& from) {
    auto const packed = some_levels();
    omnibal::level_sampler sampler(packed, some_loads(), ranks, options, from);
    words result;
    for (int i = 0; i != 20; ++i) {
      auto const step = sampler.next();
      result.push_back(step.level);
      result.insert(result.end(), step.groups.begin(), step.groups.end());
    }
    return result;
  }
};

struct online_case {
  static constexpr char const* name = "online_packer";
  using type = omnibal::online_state<1>;

  static void run(omnibal::online_packer<1>& packer, std::uint64_t first, words* left) {
    for (std::uint64_t i = first; i != first + 100; ++i) {
      auto const group = packer.push(i, static_cast<std::int64_t>(1 + i * i * 7919 % 1000));
      if (left != nullptr) left->insert(left->end(), group.ids.begin(), group.ids.end());
    }
  }
  static type state() {
    omnibal::online_packer<1> packer(std::int64_t{2048}, {.buffer = 16});
    run(packer, 0, nullptr);
    return packer.state();
  }
  static words next(type const& from) {
    omnibal::online_packer<1> packer(from);
    words result;
    run(packer, 100, &result);
    return result;
  }
};

struct deferral_case {
  static constexpr char const* name = "deferral_queue";
  using type = omnibal::deferral_state;
  static constexpr omnibal::deferral_queue_options options{
      .group_size = 4, .max_delay = 20, .contents = 3};

  static void run(omnibal::deferral_queue& queue, std::uint64_t first, words* ran) {
    for (std::uint64_t step = first; step != first + 15; ++step) {
      words ids;
      std::vector<std::int64_t> lengths;
      for (std::uint64_t i = 0; i != 8; ++i) {
        ids.push_back(step * 8 + i);
        lengths.push_back(static_cast<std::int64_t>(i == 0 && step % 4 == 2 ? 9000 : 10 + i));
      }
      auto const now = queue.push(ids, lengths, std::identity{});
      if (ran != nullptr) ran->insert(ran->end(), now.ids.begin(), now.ids.end());
    }
  }
  static type state() {
    omnibal::deferral_queue queue(options);
    run(queue, 0, nullptr);
    return queue.state();
  }
  static words next(type const& from) {
    omnibal::deferral_queue queue(options, from);
    words result;
    run(queue, 15, &result);
    return result;
  }
};

// The members of a state as words and back. The words of a list follow the other members.

words members(omnibal::sampler_state const& state) {
  words result{state.seed, state.epoch, state.digest, state.carried};
  for (auto const& segment : state.segments) {
    result.insert(result.end(), {segment.ranks, segment.batch, segment.step_count});
  }
  return result;
}

void set_members(words const& from, omnibal::sampler_state& state) {
  state = {.seed = from.at(0), .epoch = from.at(1), .digest = from.at(2), .carried = from.at(3)};
  std::size_t at = 4;
  for (auto& segment : state.segments) {
    segment.ranks = static_cast<std::uint32_t>(from.at(at++));
    segment.batch = static_cast<std::uint32_t>(from.at(at++));
    segment.step_count = from.at(at++);
  }
}

words members(omnibal::online_state<1> const& state) {
  auto const& [options, capacity, pushes] = state.header;
  words result{options.buffer, options.longest_wait, options.candidates,
               static_cast<std::uint64_t>(capacity[0]), pushes};
  for (auto const& sample : state.waiting) {
    result.insert(result.end(),
                  {sample.id, sample.push, static_cast<std::uint64_t>(sample.demand[0])});
  }
  return result;
}

void set_members(words const& from, omnibal::online_state<1>& state) {
  state.header = {
      {from.at(0), from.at(1), from.at(2)}, {static_cast<std::int64_t>(from.at(3))}, from.at(4)};
  for (std::size_t at = 5; at < from.size(); at += 3) {
    state.waiting.push_back(
        {from[at], from.at(at + 1), {static_cast<std::int64_t>(from.at(at + 2))}});
  }
}

words members(omnibal::deferral_state const& state) {
  words result{state.digest, state.step};
  for (auto const& sample : state.waiting) {
    result.insert(result.end(),
                  {sample.id, sample.step, static_cast<std::uint64_t>(sample.length)});
  }
  return result;
}

void set_members(words const& from, omnibal::deferral_state& state) {
  state.digest = from.at(0);
  state.step = from.at(1);
  for (std::size_t at = 2; at < from.size(); at += 3) {
    state.waiting.push_back(
        {from[at], from.at(at + 1), static_cast<std::int64_t>(from.at(at + 2))});
  }
}

// The bytes of a state and back, as the comments of the states allow.

template <class T>
void put(std::string& bytes, T const& value) {
  static_assert(std::is_trivially_copyable_v<T> && std::has_unique_object_representations_v<T>);
  bytes.append(reinterpret_cast<char const*>(&value), sizeof(T));
}

template <class T>
void take(std::string& bytes, T& value) {
  if (bytes.size() < sizeof(T)) throw std::runtime_error("states.bin is too short");
  std::memcpy(&value, bytes.data(), sizeof(T));
  bytes.erase(0, sizeof(T));
}

std::string bytes_of(omnibal::sampler_state const& state) {
  std::string bytes;
  put(bytes, state);
  return bytes;
}

void set_bytes(std::string bytes, omnibal::sampler_state& state) { take(bytes, state); }

std::string bytes_of(omnibal::online_state<1> const& state) {
  std::string bytes;
  put(bytes, state.header);
  for (auto const& sample : state.waiting) put(bytes, sample);
  return bytes;
}

void set_bytes(std::string bytes, omnibal::online_state<1>& state) {
  take(bytes, state.header);
  while (!bytes.empty()) take(bytes, state.waiting.emplace_back());
}

std::string bytes_of(omnibal::deferral_state const& state) {
  std::string bytes;
  put(bytes, state.digest);
  put(bytes, state.step);
  for (auto const& sample : state.waiting) put(bytes, sample);
  return bytes;
}

void set_bytes(std::string bytes, omnibal::deferral_state& state) {
  take(bytes, state.digest);
  take(bytes, state.step);
  while (!bytes.empty()) take(bytes, state.waiting.emplace_back());
}

/// Digests that ranks compare and files of plans, which are text.
std::string plans_text() {
  std::ostringstream out;
  auto const loads = some_loads();
  std::vector<std::uint32_t> const offsets{0, 30, 30, 77, 100};
  auto const plan =
      omnibal::make_plan(offsets, loads, loads, omnibal::make_plan_options{.ranks_per_node = 2});
  out << "exchange_plan " << plan.digest() << ' ' << plan.inverse().digest() << '\n';

  omnibal::context_plan context;
  context.micro_step_offsets = {0, 2};
  context.groups = {{0, 2, 1.5}, {2, 1, 0.25}};
  context.samples = omnibal::grouping({0, 2, 3}, {0, 2, 1});
  out << "context_plan " << context.digest() << '\n';

  std::vector<double> const weights{0.5, 0.2, 0.3};
  auto const size = [](double) { return 77; };
  omnibal::mixture const mixed(weights, size, std::identity{}, {.seed = 5});
  out << "mixture " << mixed.digest() << '\n';

  omnibal::pipeline_plan<std::int64_t> cuts;
  cuts.boundaries = {0, 3, 5};
  cuts.choices = {0, 1, 2, 0, 1};
  cuts.stages = {{std::int64_t{1} << 40, (std::int64_t{1} << 53) + 1, 2}, {7, 8, 1}};
  cuts.step_time = (std::int64_t{1} << 62) + 1;
  cuts.lower_bound = 3;
  omnibal::write_plan(cuts, std::ostreambuf_iterator<char>(out));
  omnibal::pipeline_plan<double> real;
  real.boundaries = {0, 1};
  real.choices = {0};
  real.stages = {{0.1, 8, 1}};
  real.step_time = 1.0 / 3;
  omnibal::write_plan(real, std::ostreambuf_iterator<char>(out));
  omnibal::write_schedule(omnibal::interleaved_1f1b(2, 4, 2), std::ostreambuf_iterator<char>(out));
  return out.str();
}

std::string read_file(std::string const& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_file(std::string const& path, std::string const& content) {
  std::ofstream out(path, std::ios::binary);
  if (!out.write(content.data(), static_cast<std::streamsize>(content.size())).flush()) {
    throw std::runtime_error("cannot write " + path);
  }
}

std::string list(words const& numbers) {
  std::string result;
  for (std::uint64_t const number : numbers) result += std::to_string(number) + ' ';
  return result + '\n';
}

words parse(std::string const& text) {
  std::istringstream in(text);
  words result;
  for (std::uint64_t number = 0; in >> number;) result.push_back(number);
  return result;
}

constexpr char const* own_order = std::endian::native == std::endian::big ? "big" : "little";

template <class Case>
void write(std::string const& folder) {
  std::string const start = folder + '/' + Case::name;
  auto const state = Case::state();
  write_file(start + ".txt", list(members(state)));
  write_file(start + ".next.txt", list(Case::next(state)));
  write_file(start + ".bin", bytes_of(state));
}

template <class Case>
void read(std::string const& folder, bool same_order) {
  std::string const start = folder + '/' + Case::name;
  words const expected = parse(read_file(start + ".next.txt"));
  if (expected.empty()) throw std::runtime_error(start + ".next.txt has no numbers");
  typename Case::type state{};
  set_members(parse(read_file(start + ".txt")), state);
  if (state != Case::state()) throw std::runtime_error(start + ".txt has another state");
  if (Case::next(state) != expected) {
    throw std::runtime_error(start + ".txt continues in another way");
  }
  typename Case::type raw{};
  set_bytes(read_file(start + ".bin"), raw);
  std::string error;
  try {
    if (Case::next(raw) != expected) {
      throw std::runtime_error(start + ".bin continues in another way");
    }
  } catch (std::logic_error const& wrong) {
    error = wrong.what();
  }
  if (same_order != error.empty()) {
    throw std::runtime_error(start + ".bin: " + (same_order ? error : "was accepted"));
  }
  std::cout << Case::name << ": "
            << (same_order ? "numbers and bytes continue" : "numbers continue, bytes: " + error)
            << '\n';
}

template <class... Cases>
void run(std::string const& mode, std::string const& folder) {
  if (mode == "write") {
    write_file(folder + "/order.txt", own_order);
    write_file(folder + "/plans.txt", plans_text());
    (write<Cases>(folder), ...);
    return;
  }
  bool const same_order = read_file(folder + "/order.txt") == own_order;
  (read<Cases>(folder, same_order), ...);
  if (read_file(folder + "/plans.txt") != plans_text()) {
    throw std::runtime_error(folder + "/plans.txt has other digests or plans");
  }
  std::cout << "digests and plans: equal\n";
}

}  // namespace

int main(int count, char** arguments) {
  try {
    std::string const mode = count == 3 ? arguments[1] : "";
    if (mode != "write" && mode != "read") throw std::runtime_error("states write|read FOLDER");
    run<epoch_case, step_case, level_case, online_case, deferral_case>(mode, arguments[2]);
  } catch (std::exception const& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
