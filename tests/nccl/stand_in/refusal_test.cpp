// SPDX-License-Identifier: Apache-2.0
// Over the stand-in for NCCL and CUDA: what the calls on a stream refuse, on all ranks where all
// must agree, and that the next call works.

#include "boot_bodies.hpp"
#include "catch.hpp"
#include "on_ranks.hpp"
#include "rank_checks.hpp"
#include "stand_in.hpp"
#include "stream_batches.hpp"

#include <omnibal/comm/collectives.hpp>
#include <omnibal/comm/gather_lengths.hpp>
#include <omnibal/cuda/device_array.hpp>
#include <omnibal/cuda/execution.hpp>
#include <omnibal/cuda/nccl/communicator.hpp>
#include <omnibal/cuda/nccl/device_payload.hpp>
#include <omnibal/cuda/nccl/device_plan.hpp>
#include <omnibal/cuda/nccl/exchange_bounded.cuh>
#include <omnibal/cuda/nccl/exchange_exact.cuh>
#include <omnibal/cuda/nccl/exchange_samples.hpp>
#include <omnibal/cuda/nccl/gather_lengths.cuh>
#include <omnibal/cuda/nccl/post_balance.cuh>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>
#include <nccl.h>

namespace {

namespace gpu = omnibal::gpu;
namespace nccl = omnibal::nccl;
using stand_in::on_ranks;

/// `call` is refused with this text, and the communicator goes on.
template <class Call>
void expect_refusal(nccl::communicator& comm, std::string const& part, Call const& call) {
  auto const text = test::text_of<std::invalid_argument>(call);
  test::require(test::contains(text, part), text);
  test::require(omnibal::all_equal(comm, 1), "the next call");
}

TEST_CASE("numbers that must be equal are agreed upon when they are new", "[nccl]") {
  on_ranks(3, [](nccl::communicator& comm) {
    std::size_t const ranks = 3;
    bool const is_other = comm.rank() == 1;
    test::own_stream const stream;
    auto const exec = gpu::on(stream);
    auto const costs = gpu::upload(exec, std::vector<std::int64_t>{3, 7, 9, 1});
    gpu::device_array<std::uint32_t> const offsets(exec, ranks + 1);
    gpu::device_array<std::int64_t> const lengths(exec, 12);
    auto const gather = [&](std::size_t most) {
      nccl::gathered_lengths<std::int64_t> const out{offsets, lengths, {}};
      nccl::gather_lengths(exec, comm, test::constant(costs), {.max_samples = most}, out);
    };
    expect_refusal(comm,
                   "omnibal::nccl::gather_lengths: ranks 0 and 1 have different "
                   "options.max_samples: 4 and 8",
                   [&] { gather(is_other ? 8 : 4); });
    gather(4);
    test::require(test::to_host(exec, comm, lengths)[11] == 1, "all lengths");
    // A collective before and after each reading, so that no rank counts work of another line.
    auto const count = [&] {
      static_cast<void>(omnibal::all_equal(comm, 1));
      std::size_t const operations = stand_in::operations();
      static_cast<void>(omnibal::all_equal(comm, 1));
      return operations;
    };
    std::size_t const before = count();
    gather(4);
    comm.wait(stream);
    // Between two readings each rank runs three collectives, and the other two may have begun the
    // fourth. An agreement of all ranks would be three more.
    test::require(count() - before <= 11, "no agreement again");

    auto const rows = gpu::upload(exec, std::vector<float>(4, 1.0F));
    gpu::device_array<float> const out(exec, 12);
    gpu::device_array<nccl::exchange_report> const report(exec, 1);
    auto const balance = [&](std::size_t most, nccl::post_balance_options const& options) {
      nccl::device_plan<> const plan(exec, {.ranks = ranks, .max_samples = most});
      nccl::post_balance(exec, comm, test::constant(costs),
                         nccl::device_rows<float const>{test::constant(rows)}, options, plan,
                         nccl::device_rows<float>{out}, report);
      test::require(test::to_host(exec, comm, report)[0].faults == gpu::fault::none, "no fault");
    };
    expect_refusal(comm, "the most samples of a rank in the plan: 4 and 5",
                   [&] { balance(is_other ? 5 : 4, {}); });
    expect_refusal(comm, "ranks 0 and 1 have different options.slot_bytes: 64 and 128",
                   [&] { balance(4, {.slot_bytes = is_other ? 128 : 64}); });
    expect_refusal(comm, "ranks 0 and 1 have different options.slot_bytes: 64 and 0", [&] {
      balance(4, is_other ? nccl::post_balance_options{} : nccl::post_balance_options{64});
    });
    balance(4, {.slot_bytes = 64});
    auto const plan =
        nccl::device_plan<>::upload(exec, test::plan_of(0, test::batch_of(4, ranks)), comm.rank());
    expect_refusal(comm, "omnibal::nccl::exchange_bounded: ranks 0 and 1 have different", [&] {
      nccl::exchange_bounded(exec, comm, plan, nccl::device_rows<float const>{test::constant(rows)},
                             {.slot_bytes = is_other ? 128U : 64U}, nccl::device_rows<float>{out},
                             report);
    });
  });
}

TEST_CASE("what is written must not lie in what is read", "[nccl]") {
  on_ranks(2, [](nccl::communicator& comm) {
    test::own_stream const stream;
    auto const exec = gpu::on(stream);
    auto const all = test::batch_of(4, 2);
    auto const plan = test::plan_of(0, all);
    auto const uploaded = nccl::device_plan<>::upload(exec, plan, comm.rank());
    gpu::device_array<float> const same(exec, 64);
    gpu::device_array<std::uint64_t> const offsets(exec, 64);
    gpu::device_array<std::int64_t> const sizes(exec, 64);
    gpu::device_array<nccl::exchange_report> const report(exec, 1);
    nccl::device_rows<float> const rows{same};
    std::string const text = "out.values overlaps in.values, must lie elsewhere";
    expect_refusal(comm, "omnibal::nccl::exchange_samples: " + text,
                   [&] { nccl::exchange_samples(exec, comm, plan, rows, rows); });
    expect_refusal(comm, "omnibal::nccl::exchange_exact: " + text,
                   [&] { nccl::exchange_exact(exec, comm, uploaded, rows, rows, report); });
    expect_refusal(comm, text, [&] {
      nccl::device_rows<float> const last{{same.data() + 63, 1}};
      nccl::exchange_bounded(exec, comm, uploaded, rows, {.slot_bytes = 64}, last, report);
    });
    expect_refusal(comm, "out.offsets overlaps in.offsets", [&] {
      gpu::device_array<float> const other(exec, 64);
      nccl::exchange_exact(
          exec, comm, uploaded, test::constant(sizes),
          nccl::device_payloads<float const>{test::constant(other), test::constant(offsets)},
          nccl::device_payloads<float>{same, offsets}, report);
    });
    std::vector<std::int64_t> const each(plan.sample_count(), 1);
    expect_refusal(comm, "exchange_samples: out overlaps in, must lie elsewhere", [&] {
      static_cast<void>(
          nccl::exchange_samples(exec, comm, plan, each, test::constant(same), same.span()));
    });
  });
}

TEST_CASE("a collective of the host says that it is within a group of the caller", "[nccl]") {
  on_ranks(2, [](nccl::communicator& comm) {
    std::vector<std::int64_t> const lengths{10, 20};
    static_cast<void>(omnibal::gather_lengths(comm, lengths));
    ncclGroupStart();
    auto const text = test::text_of<std::invalid_argument>(
        [&] { static_cast<void>(omnibal::gather_lengths(comm, lengths)); });
    ncclGroupEnd();
    comm.settle();
    test::require(test::contains(text, "between the caller's ncclGroupStart and ncclGroupEnd"),
                  text);
    test::require(omnibal::gather_lengths(comm, lengths).size() == 2, "the next call");
  });
}

TEST_CASE("what was uploaded may be changed", "[nccl]") {
  stand_in::set_reading_late(true);
  test::own_stream const stream;
  auto const exec = gpu::on(stream);
  std::vector<int> values(1000, 7);
  auto const copy = gpu::upload(exec, values);
  values.assign(1000, 8);
  CHECK(gpu::download(exec, copy) == std::vector<int>(1000, 7));
  auto plan = test::plan_of(0, test::batch_of(0, 2));
  auto const wanted = plan.home_offsets().back();
  auto const uploaded = nccl::device_plan<>::upload(exec, plan, 0);
  plan = {};
  CHECK(gpu::download(exec, uploaded.home_offsets()).back() == wanted);
  stand_in::set_reading_late(false);
}

}  // namespace
