// SPDX-License-Identifier: Apache-2.0
// What the host can check before anything is submitted: no device is needed.

#include <omnibal/cuda/device_array.hpp>
#include <omnibal/cuda/device_span.hpp>
#include <omnibal/cuda/execution.hpp>
#include <omnibal/cuda/fault.hpp>
#include <omnibal/cuda/isf.cuh>
#include <omnibal/cuda/outputs.hpp>
#include <omnibal/pack/keep.hpp>
#include <omnibal/pack/packing.hpp>
#include <omnibal/resources.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <vector>

namespace gpu = omnibal::gpu;

namespace {

using gpu::device_span;
using omnibal::resources;

int failures = 0;

/// `body` throws exactly this, and its text has all of the words.
template <class Error, class Body>
void expect_error(std::vector<std::string> const& words, Body const& body) {
  try {
    body();
    std::printf("FAILED: no error with %s\n", words.front().c_str());
  } catch (Error const& error) {
    bool is_clear = typeid(error) == typeid(Error);
    for (auto const& word : words) {
      is_clear = is_clear && std::string(error.what()).find(word) != std::string::npos;
    }
    if (is_clear) return;
    std::printf("FAILED: %s\n", error.what());
  } catch (std::exception const& error) {
    std::printf("FAILED: another error: %s\n", error.what());
  }
  ++failures;
}

template <class T>
device_span<T> of_size(std::size_t size) {
  return {nullptr, size};
}

struct keeps_strings {
  std::string text;
  template <std::size_t R>
  OMNIBAL_HOST_DEVICE bool operator()(resources<R> const&) const {
    return true;
  }
};

template <class Demands, class Capacity, class Keep>
inline constexpr bool packs =
    std::invocable<gpu::isf_fn const&, gpu::execution<>, Demands, Capacity, omnibal::isf_options,
                   Keep, gpu::packing_span>;
using usual_keep = omnibal::reaches_any<resources<2>>;
static_assert(packs<device_span<resources<2>>, resources<2>, usual_keep>);
static_assert(packs<device_span<resources<2> const>, resources<2>, usual_keep>);
static_assert(packs<gpu::device_array<resources<2, std::int32_t>>, resources<2>, usual_keep>);
static_assert(packs<device_span<std::uint32_t>, int, omnibal::reaches_any<resources<1>>>);
static_assert(!packs<device_span<resources<2, double>>, resources<2>, usual_keep>);
static_assert(!packs<device_span<resources<3>>, resources<2>, usual_keep>);
static_assert(!packs<device_span<resources<2>>, resources<2>, keeps_strings>);
static_assert(!packs<resources<2>, resources<2>, usual_keep>);

void check_isf() {
  auto const exec = gpu::on(nullptr);
  auto const demands = of_size<resources<2>>(5);
  resources<2> const capacity{9, 4096};
  auto const keep = omnibal::reaches_most(capacity);
  gpu::packing_span const out{{of_size<std::uint32_t>(6), of_size<std::uint32_t>(5), {}}};

  using std::invalid_argument;
  auto const pack = [&](resources<2> const& limits, omnibal::isf_options const& options,
                        auto const& rule, gpu::packing_span const& to) {
    gpu::isf(exec, demands, limits, options, rule, to);
  };
  expect_error<invalid_argument>({"gpu::isf", "capacity[1]", "0"}, [&] {
    pack({9, 0}, {}, keep, out);
  });
  expect_error<invalid_argument>({"gpu::isf", "options.rounds", "0"},
                                 [&] { pack(capacity, {.rounds = 0}, keep, out); });
  expect_error<invalid_argument>({"gpu::isf", "options.min_gain", "1.5"},
                                 [&] { pack(capacity, {.min_gain = 1.5}, keep, out); });
  expect_error<invalid_argument>({"gpu::isf", "threshold[0]", "10", "9"}, [&] {
    pack(capacity, {}, omnibal::reaches_any{resources{10, 4096}}, out);
  });
  gpu::packing_span wrong = out;
  wrong.groups.offsets = {};
  expect_error<invalid_argument>({"gpu::isf", "groups.offsets", "0"},
                                 [&] { pack(capacity, {}, keep, wrong); });
  wrong = out;
  wrong.groups.items = of_size<std::uint32_t>(4);
  expect_error<invalid_argument>({"gpu::isf", "groups.items", "4", "5"},
                                 [&] { pack(capacity, {}, keep, wrong); });
  wrong = out;
  wrong.report = of_size<omnibal::packing_report>(2);
  expect_error<invalid_argument>({"gpu::isf", "report", "2"},
                                 [&] { pack(capacity, {}, keep, wrong); });
  expect_error<std::length_error>({"gpu::isf", "demands", "4294967296"}, [&] {
    gpu::isf(exec, of_size<resources<2>>(std::size_t{1} << 32), capacity, {}, keep, out);
  });

  std::size_t const bytes =
      gpu::isf.scratch_bytes(demands, capacity, omnibal::isf_options{}, keep, out);
  gpu::given_scratch scratch({nullptr, bytes - 1});
  expect_error<std::length_error>({"given_scratch", std::to_string(bytes)}, [&] {
    gpu::isf(gpu::on(nullptr, scratch), demands, capacity, {}, keep, out);
  });
}

}  // namespace

int main() {
  check_isf();
  std::printf("%d failed\n", failures);
  return failures == 0 ? 0 : 1;
}
