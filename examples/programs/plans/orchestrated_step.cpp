// SPDX-License-Identifier: Apache-2.0
#include "orchestrated_step.hpp"

#include <omnibal/balance/lpt.hpp>
#include <omnibal/balance/rebalance.hpp>
#include <omnibal/balance/set_costs.hpp>
#include <omnibal/exchange/exchange_plan.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

namespace examples {

namespace {

/// The convolutions of a piece, and all else.
using convolved_time = omnibal::resources<2>;

/// The time of a batch whose convolutions are padded: a cost of sets.
class convolved_batch {
 public:
  void add(convolved_time const& piece) {
    ++count_;
    longest_ = std::max(longest_, piece[0]);
    sum_ += piece[1];
  }
  [[nodiscard]] std::int64_t value() const { return count_ * longest_ + sum_; }

 private:
  std::int64_t count_ = 0;
  std::int64_t longest_ = 0;
  std::int64_t sum_ = 0;
};

/// The same where all else is padded too.
class padded_convolved_batch {
 public:
  void add(convolved_time const& piece) { sums_.add(piece[0] + piece[1]); }
  [[nodiscard]] std::int64_t value() const { return sums_.value(); }

 private:
  omnibal::padded_batch<> sums_;
};

std::span<std::int64_t const> times_of(batch_measures const& batch, std::size_t phase) {
  if (phase == 0) return batch.times;
  return batch.encoders[phase - 1].times;
}

/// Precondition: the phase is one of an encoder.
std::vector<convolved_time> convolved_times(batch_measures::encoder const& encoder) {
  std::vector<convolved_time> result;
  for (std::size_t piece = 0; piece != encoder.times.size(); ++piece) {
    result.push_back({encoder.convolution_times[piece], encoder.times[piece]});
  }
  return result;
}

template <class Set, class Times>
std::int64_t set_load(Set set, std::span<std::uint32_t const> items, Times const& times) {
  for (std::uint32_t const item : items) set.add(times[item]);
  return set.value();
}

/// The nanoseconds of each rank.
std::vector<std::int64_t> loads_of(batch_measures const& batch, omnibal::grouping const& where,
                                   std::size_t phase, batching how) {
  auto const times = times_of(batch, phase);
  std::vector<convolved_time> convolved;
  if (how == batching::convolved || how == batching::padded_all) {
    convolved = convolved_times(batch.encoders.at(phase - 1));
  }
  std::vector<std::int64_t> result;
  for (auto const items : where) {
    std::int64_t load = 0;
    switch (how) {
      case batching::unpadded:
        for (std::uint32_t const item : items) load += times[item];
        break;
      case batching::padded: load = set_load(omnibal::padded_batch{}, items, times); break;
      case batching::convolved: load = set_load(convolved_batch{}, items, convolved); break;
      case batching::padded_all: load = set_load(padded_convolved_batch{}, items, convolved); break;
    }
    result.push_back(load);
  }
  return result;
}

omnibal::grouping copy_of(omnibal::grouping_view parts) {
  omnibal::grouping result;
  for (std::size_t part = 0; part != parts.size(); ++part) {
    for (std::uint32_t const item : parts[part]) result.push(item);
    result.close();
  }
  return result;
}

/// Calls `go_on(language, vision, audio)` with the balancers.
template <class GoOn>
void with_balancers(step_batching const& how, orchestration_rule rule, GoOn const& go_on) {
  auto const with_one = [rule](batching of, auto const& next) {
    if (of == batching::padded) return next(omnibal::padded_batch{});
    if (rule == orchestration_rule::lpt) return next(omnibal::lpt);
    return next(omnibal::rebalance);
  };
  auto const with_encoder = [&](batching of, auto const& next) {
    if (of == batching::convolved) return next(convolved_batch{});
    if (of == batching::padded_all) return next(padded_convolved_batch{});
    return with_one(of, next);
  };
  with_one(how[0], [&](auto const& language) {
    with_one(how[1], [&](auto const& vision) {
      with_encoder(how[2], [&](auto const& audio) { go_on(language, vision, audio); });
    });
  });
}

/// Adds up exchanges.
class wire_clock {
 public:
  explicit wire_clock(machine_description const& machine) : machine_(machine) {}

  /// The bytes of everything that the plan moves. `times` is 2 where as much comes back.
  template <class BytesOf>
  double run(omnibal::exchange_plan const& plan, BytesOf const& bytes_of, double times) {
    std::vector<traffic> of_ranks(plan.ranks());
    double moved = 0;
    auto const node = [&](std::size_t rank) {
      return rank / static_cast<std::size_t>(machine_.ranks_per_node);
    };
    for (std::size_t to = 0; to != plan.ranks(); ++to) {
      for (std::uint32_t const item : plan.arrivals(to)) {
        std::size_t const from = plan.home_of(item);
        if (from == to) continue;
        auto const bytes = static_cast<double>(bytes_of(item));
        bool const is_near = node(from) == node(to);
        (is_near ? of_ranks[from].sent_near : of_ranks[from].sent_far) += bytes;
        (is_near ? of_ranks[to].got_near : of_ranks[to].got_far) += bytes;
        moved += times * bytes;
        if (!is_near) across_nodes_ += times * bytes;
      }
    }
    double slowest = 0;
    for (traffic const& one : of_ranks) {
      slowest = std::max(slowest, std::max(one.sent_near, one.got_near) / near_rate() +
                                      std::max(one.sent_far, one.got_far) / far_rate());
    }
    seconds_ += times * slowest;
    return moved;
  }

  /// The measures of all items come to every rank.
  void gather(double bytes) { seconds_ += bytes / far_rate(); }

  [[nodiscard]] double seconds() const { return seconds_; }
  [[nodiscard]] double across_nodes() const { return across_nodes_; }

 private:
  struct traffic {
    double sent_near = 0;
    double sent_far = 0;
    double got_near = 0;
    double got_far = 0;
  };

  [[nodiscard]] double near_rate() const { return static_cast<double>(machine_.node_link_bytes); }
  [[nodiscard]] double far_rate() const { return static_cast<double>(machine_.link_bytes); }

  machine_description const& machine_;
  double seconds_ = 0;
  double across_nodes_ = 0;
};

}  // namespace

step_arrangement with_their_pieces(batch_measures const& batch, omnibal::grouping samples) {
  step_arrangement result;
  for (std::size_t m = 0; m != modality_count; ++m) {
    std::vector<std::uint32_t> first{0};
    for (std::uint32_t const count : batch.encoders[m].piece_counts) {
      first.push_back(first.back() + count);
    }
    omnibal::grouping& pieces = result[m + 1];
    for (std::size_t rank = 0; rank != samples.size(); ++rank) {
      for (std::uint32_t const one : samples[rank]) {
        for (std::uint32_t piece = first[one]; piece != first[one + 1]; ++piece) {
          pieces.push(piece);
        }
      }
      pieces.close();
    }
  }
  result[0] = std::move(samples);
  return result;
}

step_arrangement at_home(batch_measures const& batch) {
  omnibal::grouping samples;
  for (std::size_t rank = 0; rank + 1 != batch.offsets.size(); ++rank) {
    for (auto i = batch.offsets[rank]; i != batch.offsets[rank + 1]; ++i) samples.push(i);
    samples.close();
  }
  return with_their_pieces(batch, std::move(samples));
}

step_arrangement arrangement_of(omnibal::orchestration const& plans) {
  step_arrangement result;
  result[0] = copy_of(plans.samples.arrivals());
  for (std::size_t m = 0; m != modality_count; ++m) {
    result[m + 1] = copy_of(plans.encoders[m].inputs.arrivals());
  }
  return result;
}

double step_time::total() const { return std::accumulate(seconds.begin(), seconds.end(), 0.0); }

step_time time_of(batch_measures const& batch, step_arrangement const& where,
                  step_batching const& how) {
  step_time result;
  for (std::size_t phase = 0; phase != phase_count; ++phase) {
    double sum = 0;
    double slowest = 0;
    for (std::int64_t const nanoseconds : loads_of(batch, where[phase], phase, how[phase])) {
      auto const load = static_cast<double>(nanoseconds);
      sum += load;
      slowest = std::max(slowest, load);
    }
    result.seconds[phase] = 1e-9 * slowest;
    auto const ranks = static_cast<double>(where[phase].size());
    result.waiting[phase] = slowest > 0 ? 1 - sum / ranks / slowest : 0;
  }
  return result;
}

double work_seconds(batch_measures const& batch) {
  double nanoseconds = 0;
  for (std::size_t phase = 0; phase != phase_count; ++phase) {
    for (std::int64_t const time : times_of(batch, phase)) {
      nanoseconds += static_cast<double>(time);
    }
  }
  return 1e-9 * nanoseconds;
}

omnibal::orchestration const& orchestrate_step(batch_measures const& batch,
                                               step_batching const& how, orchestration_rule rule,
                                               std::size_t ranks_per_node,
                                               omnibal::make_orchestration_workspace& workspace) {
  auto const phase_of = [&](std::size_t m, auto const& times, auto const& balance) {
    batch_measures::encoder const& one = batch.encoders[m];
    return omnibal::encoder_phase{std::span(one.piece_counts), std::span(times),
                                  std::span(one.bytes), std::span(one.output_bytes), balance};
  };
  std::vector<convolved_time> const sounds = convolved_times(batch.encoders[1]);
  with_balancers(how, rule, [&](auto const& language, auto const& vision, auto const& audio) {
    auto const make = [&](auto const& sound_times) {
      omnibal::make_orchestration(
          batch.offsets, batch.language(language),
          std::tuple(phase_of(0, batch.encoders[0].times, vision), phase_of(1, sound_times, audio)),
          {.ranks_per_node = ranks_per_node}, workspace);
    };
    if constexpr (omnibal::set_cost<std::decay_t<decltype(audio)>, convolved_time>) {
      make(sounds);
    } else {
      make(batch.encoders[1].times);
    }
  });
  return workspace.result();
}

omnibal::orchestration orchestrate_step(batch_measures const& batch, step_batching const& how,
                                        orchestration_rule rule, std::size_t ranks_per_node) {
  omnibal::make_orchestration_workspace workspace;
  return orchestrate_step(batch, how, rule, ranks_per_node, workspace);
}

wire_time wire_time_of(batch_measures const& batch, omnibal::orchestration const& plans,
                       machine_description const& machine) {
  wire_time result;
  wire_clock clock(machine);
  constexpr double of_number = sizeof(std::int64_t);
  // Cost and bytes of a sample and the number of its pieces; cost, bytes and bytes of the output of
  // a piece.
  clock.gather(of_number * (2 + modality_count) * static_cast<double>(batch.times.size()));
  result.input_bytes += clock.run(
      plans.samples, [&](std::uint32_t i) { return batch.bytes[i]; }, 1);
  for (std::size_t m = 0; m != modality_count; ++m) {
    batch_measures::encoder const& one = batch.encoders[m];
    omnibal::encoder_routes const& routes = plans.encoders[m];
    clock.gather(of_number * 3 * static_cast<double>(one.times.size()));
    result.input_bytes += clock.run(
        routes.inputs, [&](std::uint32_t i) { return one.bytes[i]; }, 1);
    result.output_bytes += clock.run(
        routes.outputs,
        [&](std::uint32_t slot) { return one.output_bytes[routes.inputs.arrivals().item(slot)]; },
        2);
  }
  result.across_nodes = clock.across_nodes();
  result.seconds = clock.seconds();
  return result;
}

}  // namespace examples
