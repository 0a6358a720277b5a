// SPDX-License-Identifier: Apache-2.0
// Groups of ranks for whatever the bytes describe, checked by their definition, and steps of
// samples that wait, compared with a naive queue.

#include "../context/context_faults.hpp"
#include "byte_reader.hpp"
#include "naive_deferral.hpp"

#include <omnibal/context/context_groups.hpp>
#include <omnibal/context/deferral_queue.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace {

using test::byte_reader;
using test::require;

/// Mostly short, from 0 to 2^24.
std::int64_t read_length(byte_reader& bytes) {
  std::uint8_t const kind = bytes.next();
  return (std::int64_t{1} << kind % 24) + bytes.next() - 1;
}

double read_time(byte_reader& bytes) {
  std::uint8_t const kind = bytes.next();
  return kind % 4 == 0 ? 0 : static_cast<double>(kind) / (1 + bytes.next());
}

test::context_question read_question(byte_reader& bytes) {
  test::context_question question;
  question.ranks = bytes.next() % 24u + 1;
  question.cost.micro_step = read_time(bytes);
  std::uint32_t const degrees = bytes.next() % 24u + 1;
  for (std::uint32_t degree = 1; degree <= degrees; ++degree) {
    question.cost.degrees.push_back(
        {read_time(bytes), 0.01 + read_time(bytes) / degree, 0.001 * read_time(bytes) / degree});
  }
  question.rank_bytes = bytes.next() % 4 * 100;
  question.token_bytes = bytes.next() % 3;
  auto& options = question.options;
  options.capacity = read_length(bytes) * 4;
  options.multiple = bytes.next() % 4u + 1;
  options.effort = omnibal::effort{bytes.next() % 2};
  std::uint32_t const per_node = bytes.next() % 5u;
  if (per_node != 0 && question.ranks % per_node == 0) options.ranks_per_node = per_node;
  std::uint8_t const listed = bytes.next();
  for (std::uint32_t degree = 1; degree <= std::min(degrees, 8u); ++degree) {
    if ((listed >> (degree - 1) & 1) != 0) options.degrees.push_back(degree);
  }
  bool const is_some = std::any_of(options.degrees.begin(), options.degrees.end(),
                                   [&](std::uint32_t degree) { return question.allows(degree); });
  if (!is_some) options.degrees.clear();
  std::uint8_t const kind = bytes.next();
  if (kind % 2 == 0) {
    for (std::uint32_t rank = 0; rank != question.ranks; ++rank) {
      options.speeds.push_back(1 + bytes.next() % 4);
    }
  }
  if (kind % 8 > 5) {
    for (std::uint32_t rank = 0; rank != question.ranks; ++rank) {
      options.capacities.push_back(read_length(bytes) * 4 + 1);
    }
  }
  while (!bytes.empty() && question.lengths.size() < 300) {
    question.lengths.push_back(read_length(bytes));
  }
  return question;
}

void check_groups(byte_reader& bytes) {
  auto const question = read_question(bytes);
  auto const plan = question.plan();
  if (plan.status == omnibal::solve_status::infeasible) {
    require(!question.fits(question.lengths.at(plan.sample)),
            "context_groups refuses a sample that fits nowhere");
    return;
  }
  std::string const fault = test::context_faults(question, plan);
  require(fault.empty(), "context_groups: " + fault);
  require(plan == question.plan(), "context_groups gives the same plan again");
}

/// The queue is restored from its state before every other step.
void check_deferral(byte_reader& bytes) {
  omnibal::deferral_queue_options options;
  options.group_size = bytes.next() % 9u + 1;
  options.max_delay = bytes.next() % 6u;
  if (bytes.next() % 2 != 0) options.threshold = read_length(bytes);
  options.contents = bytes.next();
  bool const is_real = bytes.next() % 2 == 0;
  omnibal::deferral_queue queue(options);
  test::naive_deferral naive(options);
  auto const whole = [](std::int64_t length) { return length * 3 + length * length / 64; };
  auto const real = [&](std::int64_t length) { return 0.375 * static_cast<double>(whole(length)); };
  for (std::uint64_t id = 0; !bytes.empty();) {
    std::uint64_t const now = queue.step();
    std::vector<test::costed_sample> samples(bytes.next() % 16u);
    std::vector<std::uint64_t> ids;
    std::vector<std::int64_t> lengths;
    for (auto& sample : samples) {
      std::int64_t const length = read_length(bytes);
      sample = {id++, now, length, whole(length)};
      ids.push_back(sample.id);
      lengths.push_back(length);
    }
    if (now % 2 == 0) queue = omnibal::deferral_queue(options, queue.state());
    bool const is_flush = samples.empty() && bytes.next() % 2 == 0;
    auto const expected = is_flush ? naive.flush() : naive.push(samples);
    auto const made = is_flush  ? queue.flush()
                      : is_real ? queue.push(ids, lengths, real)
                                : queue.push(ids, lengths, whole);
    std::string fault = test::deferral_fault(made, expected, now);
    if (fault.empty()) fault = test::waiting_fault(queue.state(), naive);
    require(fault.empty(), "deferral_queue: " + fault);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  byte_reader bytes({data, size});
  if (bytes.next() % 2 == 0) {
    check_groups(bytes);
  } else {
    check_deferral(bytes);
  }
  return 0;
}
