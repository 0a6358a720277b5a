#pragma once

/// \file
/// What an exchange on a stream has found.

#include <omnibal/cuda/fault.hpp>

#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::nccl {

/// Written to device memory by an exchange on a stream, on each rank; what was there before does
/// not matter.
struct exchange_report {
  /// Those of all ranks in the bounded form. `no_room` where a message did not fit into its slot or
  /// the arrivals did not fit into the output; what came is unspecified then, and what was there
  /// before is unchanged, so that the exact form can do the same exchange.
  gpu::fault faults = gpu::fault::none;
  /// The samples that this rank has afterwards.
  std::uint32_t arrivals = 0;
  /// Their elements: rows, or values of payloads.
  std::uint64_t elements = 0;
  /// The bytes that this rank has sent to others.
  std::uint64_t sent_bytes = 0;
  /// The largest message between two ranks, of all ranks in the bounded form: the slot that would
  /// have been enough.
  std::uint64_t largest_message = 0;
};

/// How many bytes the bounded form sends for each byte of samples: it sends a whole slot to each of
/// the other ranks. 0 where nothing was sent. Precondition: `ranks > 0`.
[[nodiscard]] inline double padding_factor(exchange_report const& report, std::size_t slot_bytes,
                                           std::size_t ranks) {
  if (report.sent_bytes == 0) return 0.0;
  double const sent = static_cast<double>(slot_bytes) * static_cast<double>(ranks - 1);
  return sent / static_cast<double>(report.sent_bytes);
}

}  // namespace omnibal::inline v0::nccl
