#pragma once

/// \file
/// Gathering lengths: memory, checks and the order of the steps, on the host. `run` is that of
/// stream_calls.hpp.

#include <omnibal/check.hpp>
#include <omnibal/comm/communicator.hpp>
#include <omnibal/comm/gather_lengths.hpp>
#include <omnibal/cuda/execution.hpp>
#include <omnibal/cuda/nccl/detail/length_blocks.hpp>
#include <omnibal/cuda/nccl/detail/stream_calls.hpp>
#include <omnibal/cuda/nccl/detail/wire.hpp>
#include <omnibal/cuda/nccl/gathered_lengths.hpp>
#include <omnibal/detail/agreement.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace omnibal::inline v0::nccl::detail {

/// The largest number of samples of a rank, found by a collective of the host that waits. Throws on
/// all ranks where one cannot go on.
template <class Comm, class Check>
[[nodiscard]] std::size_t agree_on_most(std::string_view function, Comm& comm, std::size_t count,
                                        Check const& check) {
  omnibal::detail::agreement<std::uint64_t> on_counts;
  auto const reports = on_counts.run({function, ""}, comm, [&](auto& report) {
    check();
    report.facts = count;
  });
  std::size_t most = 0;
  for (auto const& report : reports) most = std::max<std::size_t>(most, report.facts);
  return most;
}

struct gather_lengths_call {
  static constexpr std::string_view name = "nccl::gather_lengths";

  template <class Run, class Resource, class Comm, class T>
  void operator()(Run const& run, gpu::execution<Resource> const& exec, Comm& comm,
                  local_lengths<T> const& local, gathered_lengths<T> const& out,
                  gather_lengths_options const& options) const {
    std::size_t const ranks = omnibal::detail::rank_count(comm);
    auto const check = [&] {
      omnibal::detail::check_size(name, "the size of the offsets", out.offsets.size(), ranks + 1);
      if (out.faults.size() > 1) {
        omnibal::detail::throw_invalid(name, "the faults are more than one word");
      }
    };
    std::size_t most = 0;
    if (options.most_samples) {
      check();
      most = *options.most_samples;
    } else {
      most = agree_on_most(name, comm, local.values.size(), check);
    }
    check_most_samples(name, "options.most_samples", most, ranks);
    local_columns const columns = columns_of(name, local);
    constexpr std::size_t kinds = kinds_of_length<T>;
    length_columns const to{reinterpret_cast<std::int64_t*>(out.lengths.data()), kinds, 1,
                            out.lengths.size()};
    run(exec, [&](auto& b) {
      gather_columns(b, wire_for(b, comm, exec.stream()), columns, static_cast<std::uint32_t>(most),
                     out.offsets.data(), to, out.faults.data());
    });
  }
};

}  // namespace omnibal::inline v0::nccl::detail
