// SPDX-License-Identifier: Apache-2.0
// The balancers of the device give what those of the host give, for one step, for many at once, and
// from a graph that is captured once and replayed with other costs.

#include "cost_shapes.hpp"
#include "device_program.hpp"
#include "reference/refine_rounds.hpp"
#include "serial_balance.hpp"

#include <omnibal/balance/deal.hpp>
#include <omnibal/balance/lpt.hpp>
#include <omnibal/balance/refine_parts.hpp>
#include <omnibal/cuda/deal.cuh>
#include <omnibal/cuda/device_array.hpp>
#include <omnibal/cuda/execution.hpp>
#include <omnibal/cuda/lpt.cuh>
#include <omnibal/cuda/refine_parts.cuh>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace gpu = omnibal::gpu;

// What one launch does by default is bounded.
static_assert(gpu::refine_parts_options{}.rounds <= 1000 &&
              gpu::refine_parts_options{}.rounds == test::refine_rounds_options{}.rounds);

namespace {

using test::cost_list;
using test::step_costs;

/// Costs, offsets and parts on the device. What belongs to costs behind the last step is not always
/// written, but downloaded with the rest.
class device_steps {
 public:
  device_steps(gpu::execution<> const& exec, step_costs const& steps, std::size_t bound,
               std::size_t parts)
      : exec_(exec),
        bound_(bound),
        costs_(gpu::upload(exec, steps.costs)),
        step_offsets_(gpu::upload(exec, steps.offsets)),
        offsets_(exec, steps.steps() * parts + 1),
        items_(gpu::upload(exec, std::vector<std::uint32_t>(steps.costs.size()))),
        group_count_(exec, 1),
        part_of_(gpu::upload(exec, std::vector<std::uint32_t>(steps.costs.size()))),
        faults_(gpu::upload(exec, std::vector<gpu::fault>(1, gpu::fault::none))) {}

  [[nodiscard]] gpu::cost_steps steps() const { return {costs_, step_offsets_, bound_}; }
  [[nodiscard]] gpu::part_span out() const {
    return {{offsets_, items_, group_count_}, part_of_, faults_};
  }
  [[nodiscard]] omnibal::grouping_view view() const { return out().groups.view(); }
  [[nodiscard]] gpu::device_array<std::int64_t> const& costs() const { return costs_; }

  /// What was written, in the arrays of the host's tests.
  [[nodiscard]] test::written_parts download() const {
    test::written_parts result;
    result.offsets = gpu::download(exec_, offsets_);
    result.items = gpu::download(exec_, items_);
    result.part_of = gpu::download(exec_, part_of_);
    result.group_count = gpu::download(exec_, group_count_)[0];
    result.faults = gpu::download(exec_, faults_)[0];
    return result;
  }

 private:
  gpu::execution<> exec_;
  std::size_t bound_;
  gpu::device_array<std::int64_t> costs_;
  gpu::device_array<std::uint32_t> step_offsets_;
  gpu::device_array<std::uint32_t> offsets_;
  gpu::device_array<std::uint32_t> items_;
  gpu::device_array<std::uint32_t> group_count_;
  gpu::device_array<std::uint32_t> part_of_;
  gpu::device_array<gpu::fault> faults_;
};

void check_all(test::comparison& results, gpu::execution<> const& exec, step_costs const& steps,
               std::size_t bound, std::size_t parts, std::string const& what) {
  device_steps const dealt(exec, steps, bound, parts);
  device_steps const placed(exec, steps, bound, parts);
  device_steps const refined(exec, steps, bound, parts);
  bool const overflows = steps.overflows();
  auto const is_same = [&](device_steps const& device, auto const& expected,
                           std::string const& name) {
    if (overflows) {
      results.expect(has(device.download().faults, gpu::fault::overflow),
                     name + ", " + what + ": no fault where a sum overflows");
      return;
    }
    auto const differs = test::differs_from_host(device.download(), steps, parts, expected);
    results.expect(differs.empty(), name + ", " + what + ": " + differs);
  };
  auto const deal = [&](cost_list const& costs) { return omnibal::deal(costs, parts); };

  gpu::deal(exec, dealt.steps(), parts, dealt.out());
  is_same(dealt, deal, "deal");
  for (auto const policy : {omnibal::count_policy::any, omnibal::count_policy::at_most_one_apart}) {
    gpu::lpt(exec, placed.steps(), parts, {.count = policy}, placed.out());
    is_same(
        placed,
        [&](cost_list const& costs) {
          return omnibal::lpt(costs, parts, std::identity{}, {.count = policy});
        },
        "lpt");
  }
  // A round passes over all samples of a step by one block.
  bool const is_long = steps.largest > 100'000;
  std::uint64_t const rounds = test::is_small() ? 16 : is_long ? 50 : 1000;
  for (auto const counts : {omnibal::part_counts::free, omnibal::part_counts::kept}) {
    for (double const tolerance : {0.005, 0.0}) {
      bool const is_free = counts == omnibal::part_counts::free;
      if (test::is_small() && is_free == (tolerance == 0.0)) continue;
      gpu::refine_parts(exec, refined.steps(), dealt.view(),
                        {.max_overload = tolerance, .counts = counts, .rounds = rounds},
                        refined.out());
      is_same(
          refined,
          [&](cost_list const& costs) {
            return test::refine_rounds(
                costs, deal(costs), std::identity{},
                {.max_overload = tolerance, .counts = counts, .rounds = rounds});
          },
          "refine_parts");
    }
  }
  // In one launch: what the two that came last gave.
  gpu::refine_parts(exec, dealt.steps(), parts,
                    {.max_overload = 0.0, .counts = omnibal::part_counts::kept, .rounds = rounds},
                    dealt.out());
  results.expect(overflows || dealt.download().same(refined.download()),
                 "deal and refine_parts, " + what);
}

void check_shapes(test::comparison& results, gpu::execution<> const& exec) {
  std::vector<std::size_t> counts{0, 1, 7, 600};
  std::vector<std::size_t> part_counts{1, 8, 64};
  if (!test::is_small()) {
    counts.push_back(4096);
    part_counts.insert(part_counts.end(), {2, 600});
  }
  for (std::size_t const count : counts) {
    for (std::size_t const parts : part_counts) {
      for (auto const& shape : test::cost_shapes(count, count, parts)) {
        if (!results.takes_next()) continue;
        step_costs const steps({shape.costs});
        check_all(results, exec, steps, steps.largest, parts,
                  shape.name + ", " + std::to_string(count) + " samples, " + std::to_string(parts) +
                      " parts");
      }
    }
  }
}

void check_large_steps(test::comparison& results, gpu::execution<> const& exec) {
  test::random_amounts random(1);
  std::vector<std::size_t> counts{9000};
  if (!test::is_small()) counts.insert(counts.end(), {65536, 1'000'000, 10'000'000});
  for (std::size_t const count : counts) {
    std::vector<std::size_t> part_counts{8, 64, 4096};
    if (count > 1'000'000 || test::is_small()) part_counts = {64};
    for (std::size_t const parts : part_counts) {
      cost_list costs(count);
      for (auto& cost : costs) cost = random.heavy_tail(1 << 24);
      step_costs steps({costs});
      check_all(results, exec, steps, count, parts,
                std::to_string(count) + " samples, " + std::to_string(parts) + " parts");
      if (count > 1'000'000) continue;
      steps.add({5, 4, 3});
      steps.pad(count + 100);
      check_all(results, exec, steps, count, parts,
                std::to_string(count) + " samples and a small step");
    }
  }
}

step_costs many_steps(std::uint64_t seed, std::size_t count) {
  test::random_amounts random(seed);
  step_costs result;
  for (std::size_t s = 0; s != count; ++s) {
    cost_list costs(static_cast<std::size_t>(random.between(0, 4096)));
    for (auto& cost : costs) cost = random.heavy_tail(1 << 20);
    result.add(costs);
  }
  return result;
}

void check_many_steps(test::comparison& results, gpu::execution<> const& exec) {
  step_costs const steps = many_steps(2, test::is_small() ? 5 : 1024);
  check_all(results, exec, steps, steps.largest, 64, "many steps");
  check_all(results, exec, steps, steps.costs.size(), 64, "many steps without a bound");
}

/// Captures deal, refine_parts and lpt with scratch of the caller, and replays them with other
/// costs.
void check_graph(test::comparison& results) {
  cudaStream_t stream = nullptr;
  gpu::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  {
    auto const exec = gpu::on(stream);
    constexpr std::size_t parts = 16;
    step_costs first = many_steps(3, test::is_small() ? 3 : 20);
    device_steps const dealt(exec, first, first.costs.size(), parts);
    device_steps const refined(exec, first, first.largest, parts);
    device_steps const placed(exec, first, first.costs.size(), parts);
    std::size_t const bytes =
        gpu::deal.scratch_bytes(dealt.steps(), parts, dealt.out()) +
        gpu::lpt.scratch_bytes(placed.steps(), parts, omnibal::lpt_options{}, placed.out()) +
        gpu::refine_parts.scratch_bytes(refined.steps(), parts, gpu::refine_parts_options{},
                                        refined.out());
    gpu::device_array<std::byte> const memory(exec, bytes);
    gpu::given_scratch scratch(memory.span());
    auto const given = gpu::on(stream, scratch);
    exec.synchronize();

    cudaGraph_t graph = nullptr;
    cudaGraphExec_t replay = nullptr;
    gpu::check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    gpu::deal(given, dealt.steps(), parts, dealt.out());
    gpu::refine_parts(given, refined.steps(), parts, {}, refined.out());
    gpu::lpt(given, placed.steps(), parts, {}, placed.out());
    gpu::check(cudaStreamEndCapture(stream, &graph));
    gpu::check(cudaGraphInstantiate(&replay, graph, 0));

    for (std::int64_t round = 0; round != 3; ++round) {
      step_costs steps = first;
      for (std::size_t i = 0; i != steps.costs.size(); ++i) {
        steps.costs[i] = steps.costs[i] * (round + 1) % 10'007;
      }
      for (device_steps const* device : {&dealt, &refined, &placed}) {
        gpu::check(cudaMemcpyAsync(device->costs().data(), steps.costs.data(),
                                   steps.costs.size() * sizeof(std::int64_t),
                                   cudaMemcpyHostToDevice, stream));
      }
      gpu::check(cudaGraphLaunch(replay, stream));
      auto const differs = [&](device_steps const& device, auto const& expected) {
        return test::differs_from_host(device.download(), steps, parts, expected);
      };
      auto const in_graph = "in a graph, round " + std::to_string(round) + ": ";
      auto const deal = [&](cost_list const& costs) { return omnibal::deal(costs, parts); };
      std::string text = differs(dealt, deal);
      results.expect(text.empty(), "deal " + in_graph + text);
      text = differs(
          refined, [&](cost_list const& costs) { return test::refine_rounds(costs, deal(costs)); });
      results.expect(text.empty(), "refine_parts " + in_graph + text);
      text = differs(placed, [&](cost_list const& costs) { return omnibal::lpt(costs, parts); });
      results.expect(text.empty(), "lpt " + in_graph + text);
    }
    gpu::check(cudaGraphExecDestroy(replay));
    gpu::check(cudaGraphDestroy(graph));
  }
  gpu::check(cudaStreamDestroy(stream));
}

void check_faults(test::comparison& results, gpu::execution<> const& exec) {
  step_costs const steps({{1, 2, 3}, {4, -5}});
  device_steps const device(exec, steps, steps.largest, 2);
  gpu::lpt(exec, device.steps(), 2, {}, device.out());
  results.expect(device.download().faults == gpu::fault::invalid_amount, "a negative cost");
}

}  // namespace

int main() {
  return test::device_program([](test::comparison& results) {
    auto const exec = gpu::on(cudaStreamPerThread);
    results.begin("shapes");
    check_shapes(results, exec);
    results.begin("many steps");
    check_many_steps(results, exec);
    results.begin("large steps");
    check_large_steps(results, exec);
    results.begin("a graph");
    check_graph(results);
    check_faults(results, exec);
  });
}
