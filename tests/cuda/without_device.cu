// SPDX-License-Identifier: Apache-2.0
// A program with CUDA that runs where there is no driver, or where the driver shows no device, is
// told so. The test hides the devices of a machine that has some.

#include <omnibal/cuda/deal.cuh>
#include <omnibal/cuda/device_array.hpp>
#include <omnibal/cuda/error.hpp>
#include <omnibal/cuda/execution.hpp>
#include <omnibal/cuda/feistel.cuh>
#include <omnibal/cuda/metrics.cuh>
#include <omnibal/rng/feistel.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>

namespace gpu = omnibal::gpu;

namespace {

int failures = 0;

/// `body` throws a `gpu::error` whose text says that a driver or a device is missing, and where.
template <class Body>
void expect_clear_error(char const* what, Body const& body) {
  try {
    body();
    std::printf("%s: no error\n", what);
  } catch (gpu::error const& error) {
    std::string const text = error.what();
    std::printf("%s: %s\n", what, text.c_str());
    bool const no_driver = error.code() == cudaErrorInsufficientDriver &&
                           text.find("there is no NVIDIA driver") != std::string::npos;
    bool const no_device =
        error.code() == cudaErrorNoDevice && text.find("shows no device") != std::string::npos;
    bool const has_place = std::string(error.file()).find("pp") != std::string::npos ||
                           std::string(error.file()).find("cu") != std::string::npos;
    if ((no_driver || no_device) && has_place && error.line() != 0) return;
  } catch (std::exception const& error) {
    std::printf("%s: another error: %s\n", what, error.what());
  }
  ++failures;
}

}  // namespace

int main() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) == cudaSuccess && devices != 0) {
    std::puts("skipped: CUDA_VISIBLE_DEVICES does not hide the devices");
    return 77;
  }
  auto const exec = gpu::on(nullptr);
  expect_clear_error("an array", [&] { gpu::device_array<int> const array(exec, 10); });
  expect_clear_error("a launch", [&] {
    gpu::feistel(exec, omnibal::rng::feistel{1}, 0, gpu::device_span<std::uint32_t>(nullptr, 1000));
  });
  expect_clear_error("a size of scratch", [] {
    gpu::cost_steps const steps(
        gpu::device_span<std::int64_t const>(nullptr, std::size_t{1} << 20));
    gpu::grouping_span const parts{gpu::device_span<std::uint32_t>(nullptr, 65),
                                   gpu::device_span<std::uint32_t>(nullptr, std::size_t{1} << 20),
                                   {}};
    static_cast<void>(gpu::deal.scratch_bytes(steps, std::size_t{64}, gpu::part_span{parts}));
  });
  expect_clear_error("scratch", [&] {
    gpu::imbalance(exec, gpu::device_span<std::int64_t const>(nullptr, 1000),
                   gpu::device_span<double>(nullptr, 1));
  });
  expect_clear_error("waiting", [&] { exec.synchronize(); });
  return failures == 0 ? 0 : 1;
}
