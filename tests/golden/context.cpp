// SPDX-License-Identifier: Apache-2.0
// Prints a digest of the groups of ranks that seeded lengths get, of the pieces of their samples,
// and of what runs in which step where some wait.
// expected/context.txt has these lines; where they change on purpose, replace it by the output of
// this program.

#include "digest.hpp"

#include <omnibal/context/context_exchange.hpp>
#include <omnibal/context/context_groups.hpp>
#include <omnibal/context/context_pieces.hpp>
#include <omnibal/context/deferral_queue.hpp>
#include <omnibal/rng/engine.hpp>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

namespace {

/// Powers of two, so that all times are exact.
omnibal::context_cost exact_cost() {
  omnibal::context_cost cost{.micro_step = 1024};
  for (int degree = 1; degree <= 16; ++degree) {
    double share = 1;
    while (2 * share <= degree) share *= 2;
    cost.degrees.push_back({64, 1 / share + 0.0625, 0.0009765625 / share});
  }
  return cost;
}

std::vector<std::int64_t> seeded_lengths(std::size_t count) {
  omnibal::rng::engine random(count);
  std::vector<std::int64_t> lengths(count);
  for (std::int64_t& length : lengths) {
    std::uint64_t const octave = 16u << omnibal::rng::below(random, 10);
    length = static_cast<std::int64_t>(octave + omnibal::rng::below(random, octave));
  }
  return lengths;
}

void print_groups(std::string const& name, omnibal::context_groups_options const& options) {
  auto const memory = [](std::int64_t length, std::uint32_t degree) {
    return (length + degree - 1) / degree;
  };
  for (std::size_t const count : {5, 12, 100, 1000}) {
    auto const plan =
        omnibal::context_groups(seeded_lengths(count), 16, exact_cost(), memory, options);
    golden::print(name + ", " + std::to_string(count) + " samples", plan.digest());
  }
}

/// Where tokens go, and what the ranks are told of them.
void print_pieces(std::string const& name, omnibal::context_pieces_options const& options) {
  auto const memory = [](std::int64_t length, std::uint32_t degree) {
    return (length + degree - 1) / degree;
  };
  for (std::size_t const count : {5, 100, 1000}) {
    auto const lengths = seeded_lengths(count);
    auto const plan =
        omnibal::context_groups(lengths, 16, exact_cost(), memory, {.capacity = 4096});
    auto const layout = omnibal::context_pieces(plan, lengths, 16, options);
    std::vector<std::uint64_t> home_offsets;
    for (std::size_t rank = 0; rank <= 16; ++rank) home_offsets.push_back(count * rank / 16);
    test::fnv1a told;
    told.add(omnibal::context_exchange(layout, home_offsets, 2).digest());
    std::vector<std::int32_t> ids;
    for (std::size_t k = 0; k != layout.micro_steps(); ++k) {
      for (std::size_t rank = 0; rank != 16; ++rank) {
        layout.position_ids(k, rank, std::back_inserter(ids));
        told.add(golden::digest_of(layout.cu_seqlens(k, rank)));
      }
    }
    told.add(golden::digest_of(ids));
    golden::print(name + ", " + std::to_string(count) + " samples", told.value());
  }
}

/// What runs in forty steps and after them, and the state in the middle.
void print_deferral(std::string const& name, omnibal::deferral_queue_options const& options) {
  omnibal::deferral_queue queue(options);
  test::fnv1a hash;
  auto const add = [&hash](omnibal::deferral_step const& step) {
    for (std::size_t i = 0; i != step.ids.size(); ++i) {
      hash.add(step.ids[i]);
      hash.add(static_cast<std::uint64_t>(step.lengths[i]));
      hash.add(step.delays[i]);
    }
    hash.add(step.ids.size());
  };
  auto const cost = [](std::int64_t length) { return 65'536 * length + length * length; };
  std::uint64_t state = 0;
  for (std::size_t step = 0; step != 40; ++step) {
    auto const lengths = seeded_lengths(100 + step);
    std::vector<std::uint64_t> ids(lengths.size());
    for (std::size_t i = 0; i != ids.size(); ++i) ids[i] = 1000 * step + i;
    add(queue.push(ids, lengths, cost));
    if (step == 20) state = queue.state().digest;
  }
  add(queue.flush());
  golden::print(name, hash.value());
  golden::print(name + ", state", state);
}

}  // namespace

int main() {
  print_groups("context_groups", {.capacity = 4096});
  print_groups("context_groups in nodes", {.capacity = 4096, .ranks_per_node = 4, .multiple = 2});
  print_groups("context_groups of powers of two",
               {.capacity = 8192, .degrees = omnibal::powers_of_two(16)});
  print_groups("context_groups with speeds",
               {.capacity = 8192,
                .degrees = omnibal::powers_of_two(16),
                .ranks_per_node = 4,
                .speeds = {4, 4, 4, 4, 2, 2, 2, 2, 4, 4, 1, 4, 2, 4, 2, 4}});
  print_pieces("context_pieces", {});
  print_pieces("context_pieces, equal ones of 4",
               {.multiple = 4, .padding = omnibal::context_padding::to_equal_pieces});
  print_deferral("deferral_queue of 16 places", {.group_size = 16});
  print_deferral("deferral_queue of 64 places",
                 {.group_size = 64, .max_delay = 5, .threshold = 2048, .contents = 9});
}
