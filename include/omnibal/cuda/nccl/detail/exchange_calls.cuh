// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Host calls of the exchanges on a stream: memory, checks and the order of the steps.

#include <omnibal/check.hpp>
#include <omnibal/comm/communicator.hpp>
#include <omnibal/cuda/detail/device_backend.cuh>
#include <omnibal/cuda/device_array.hpp>
#include <omnibal/cuda/execution.hpp>
#include <omnibal/cuda/fault.hpp>
#include <omnibal/cuda/nccl/detail/exchange_on_stream.hpp>
#include <omnibal/cuda/nccl/detail/length_blocks.hpp>
#include <omnibal/cuda/nccl/detail/wire.hpp>
#include <omnibal/cuda/nccl/device_payload.hpp>
#include <omnibal/cuda/nccl/device_plan.hpp>
#include <omnibal/detail/agreement.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0::nccl::detail {

#pragma GCC visibility push(hidden)

/// Throws unless the plan is for the ranks of the communicator.
template <class Comm>
void check_plan(std::string_view function, Comm& comm, device_plan_view const& plan) {
  omnibal::detail::check_size(function, "the number of ranks of the plan", plan.ranks,
                              omnibal::detail::rank_count(comm));
}

inline void check_report(std::string_view function, gpu::device_span<exchange_report> const& report,
                         std::size_t fields = 1) {
  omnibal::detail::check_size(function, "the size of the report", report.size(), fields);
}

inline void check_slot(std::string_view function, std::size_t slot_bytes,
                       std::string_view argument = "options.slot_bytes") {
  if (slot_bytes % 16 == 0 && slot_bytes > header_bytes) return;
  omnibal::detail::throw_invalid(function, argument, " is ", slot_bytes,
                                 ", must be a multiple of 16 above 16");
}

/// Throws if ranks with `most` samples each could exceed the range of an index.
inline void check_most_samples(std::string_view function, std::string_view argument,
                               std::size_t most, std::size_t ranks) {
  // Checks each number separately first, because their product could wrap.
  omnibal::detail::check_number(function, argument, most);
  omnibal::detail::check_number(function, "the number of ranks", ranks);
  omnibal::detail::check_index_count(function, "the global batch", most * ranks);
}

/// Checks the arguments and submits the exchange with slots of fixed size.
template <class Resource, class Comm>
void exchange_bounded_call(std::string_view function, gpu::execution<Resource> const& exec,
                           Comm& comm, device_plan_view const& plan, payload const& load,
                           std::size_t slot_bytes,
                           gpu::device_span<exchange_report> const& report) {
  check_plan(function, comm, plan);
  check_slot(function, slot_bytes);
  check_report(function, report);
  comm.agree(function, "options.slot_bytes", slot_bytes);
  gpu::detail::run_on_device(exec, [&](auto& b) {
    b.fill_zero(report.data(), 1);
    exchange_in_slots(b, wire_for(b, comm, exec.stream()), plan, load, slot_bytes, report.data());
  });
}

/// The state of an exact exchange: device memory that both of its halves use, and the messages that
/// the first half finds.
template <class Resource>
class exact_exchange {
 public:
  exact_exchange(gpu::execution<Resource> const& exec, device_plan_view const& plan,
                 std::uint32_t rank, std::span<payload const> loads)
      : ranks_(plan.ranks),
        indices_(exec, index_count(plan)),
        positions_(exec, loads.size() * position_count(plan)),
        words_(exec, loads.size() * (2 * ranks_ + 1) + 1 + ranks_) {
    std::uint32_t* next = indices_.data();
    auto const take = [&](std::size_t n) { return std::exchange(next, next + n); };
    plan_tables tables = take_plan_tables(take, positions_.data(), plan, rank);
    for (payload const& load : loads) {
      fields_.push_back({tables, load});
      tables.positions += position_count(plan);
    }
  }

  [[nodiscard]] std::span<moved_field> fields() { return fields_; }

  /// Returns the words in which the first half writes the sizes for the host.
  [[nodiscard]] std::uint64_t* words() const { return words_.data(); }

  /// Copies the words to the host: one small copy, for which the call waits. Throws on all ranks if
  /// one rank has a fault: on this rank the exception of the fault, on the others
  /// `communication_error`.
  template <class Comm>
  void fetch(std::string_view function, Comm& comm, gpu::execution<Resource> const& exec) {
    std::byte const* const found =
        comm.fetch(words_.data(), words_.size() * sizeof(std::uint64_t), exec.stream());
    host_.resize(words_.size());
    std::memcpy(host_.data(), found, host_.size() * sizeof(std::uint64_t));
    check_faults(function, omnibal::detail::own_rank(comm));
    std::span<std::uint64_t const> words(host_);
    for (moved_field& field : fields_) {
      field.messages = {words.first(ranks_), words.subspan(ranks_, ranks_), words[2 * ranks_]};
      words = words.subspan(2 * ranks_ + 1);
    }
  }

 private:
  void check_faults(std::string_view function, std::size_t rank) const {
    auto const faults_of = [&](std::size_t other) {
      return static_cast<gpu::fault>(
          static_cast<std::uint32_t>(host_[host_.size() - ranks_ + other]));
    };
    gpu::check(faults_of(rank), function);
    for (std::size_t other = 0; other != ranks_; ++other) {
      try {
        gpu::check(faults_of(other), function);
      } catch (std::exception const& error) {
        omnibal::detail::throw_remote_failure(function, other, error.what());
      }
    }
  }

  std::size_t ranks_;
  gpu::device_array<std::uint32_t, Resource> indices_;
  gpu::device_array<std::uint64_t, Resource> positions_;
  /// For each field: the bytes sent to each rank, the bytes received from each rank, and the bytes
  /// kept. After all fields: the faults of this rank, and the faults of each rank.
  gpu::device_array<std::uint64_t, Resource> words_;
  std::vector<moved_field> fields_;
  std::vector<std::uint64_t> host_;
};

/// Runs the exact form. `before(b, wire, faults)` makes the plan if it does not exist yet.
template <class Resource, class Comm, class Before>
void exchange_exact_call(std::string_view function, gpu::execution<Resource> const& exec,
                         Comm& comm, device_plan_view const& plan, std::span<payload const> loads,
                         gpu::device_span<exchange_report> const& report, Before const& before) {
  check_plan(function, comm, plan);
  check_report(function, report, loads.size());
  exact_exchange<Resource> exchange(exec, plan, static_cast<std::uint32_t>(comm.rank()), loads);
  gpu::detail::run_on_device(exec, [&](auto& b) {
    auto const wire = wire_for(b, comm, exec.stream());
    b.fill_zero(report.data(), report.size());
    before(b, wire, &report.data()->faults);
    find_messages(b, wire, exchange.fields(), report.data(), exchange.words());
  });
  exchange.fetch(function, comm, exec);
  gpu::detail::run_on_device(exec, [&](auto& b) {
    exchange_messages(b, wire_for(b, comm, exec.stream()), exchange.fields(), report.data());
  });
}

/// The argument `before` for a plan that exists already: it does nothing.
inline constexpr auto no_step_before = [](auto&, auto const&, gpu::fault*) {};

/// A counter of allocated bytes, each array rounded up to the alignment. The returned pointers must
/// not be dereferenced.
class counting_resource {
 public:
  [[nodiscard]] void* allocate(cudaStream_t /*stream*/, std::size_t bytes, std::size_t alignment) {
    bytes_ += round_up(bytes, static_cast<std::uint32_t>(alignment));
    return reinterpret_cast<void*>(alignment);
  }
  void deallocate(cudaStream_t, void*, std::size_t, std::size_t) const noexcept {}

  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_ = 0;
};

/// Returns the scratch of the exact form if messages fill the room of the loads. The pointers in
/// `loads` are only compared with null.
template <class Meter, class Before>
[[nodiscard]] std::size_t exact_scratch_bytes(device_plan_view const& plan,
                                              std::span<payload const> loads,
                                              Before const& before) {
  counting_resource arrays;
  exact_exchange exchange(gpu::execution<counting_resource>(cudaStream_t{}, arrays), plan, 0,
                          loads);
  silent_wire const wire{0, plan.ranks};
  std::vector<exchange_report> reports(loads.size());
  Meter finding;
  before(finding, wire, &reports.data()->faults);
  find_messages(finding, wire, exchange.fields(), reports.data(), exchange.words());

  std::vector<std::uint64_t> most;
  for (payload const& load : loads) {
    most.push_back(max_kept(plan, load));
    most.push_back(load.out_room * load.element_bytes +
                   std::size_t{plan.max_arrivals} * (load.word - 1));
  }
  std::span<std::uint64_t const> next(most);
  for (moved_field& field : exchange.fields()) {
    field.messages = {next.first(1), next.subspan(1, 1), 0};
    next = next.subspan(2);
  }
  Meter moving;
  exchange_messages(moving, wire, exchange.fields(), reports.data());
  return arrays.bytes() + std::max(finding.total_bytes(), moving.total_bytes());
}

#pragma GCC visibility pop

}  // namespace omnibal::inline v0::nccl::detail
