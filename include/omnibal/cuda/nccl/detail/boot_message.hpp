#pragma once

/// \file
/// What ranks tell each other before NCCL starts.

#include <omnibal/check.hpp>
#include <omnibal/cuda/nccl/communicator_options.hpp>
#include <omnibal/cuda/nccl/detail/host_identity.hpp>
#include <omnibal/cuda/nccl/error.hpp>

#include <cstdint>
#include <string>
#include <string_view>

#include <nccl.h>

namespace omnibal::inline v0::nccl::detail {

/// "omnibal" and the version of these messages.
inline constexpr std::uint64_t boot_magic = 0x6f6d6e6962616c01;

/// Who a rank is and with what it works. All must agree but for the rank.
struct boot_hello {
  std::uint64_t magic = boot_magic;
  /// Of the text by which a run names itself.
  std::uint64_t run = 0;
  std::uint32_t rank = 0;
  std::uint32_t size = 0;
  std::int32_t nccl_version = 0;
  std::uint32_t unused = 0;
};

/// What rank 0 tells the others.
struct boot_answer {
  boot_hello rank_0;
  ncclUniqueId id{};
};

[[nodiscard]] inline boot_hello hello_of(world const& place, std::string_view run) {
  boot_hello result;
  result.run = digest_of_text(run);
  result.rank = static_cast<std::uint32_t>(place.rank);
  result.size = static_cast<std::uint32_t>(place.size);
  int version = 0;
  check(ncclGetVersion(&version));
  result.nccl_version = version;
  return result;
}

/// As NCCL writes its versions: 2.28.9.
[[nodiscard]] inline std::string version_text(std::int32_t version) {
  int const major = version >= 10000 ? version / 10000 : version / 1000;
  int const rest = version >= 10000 ? version % 10000 : version % 1000;
  return omnibal::detail::to_text(major) + "." + omnibal::detail::to_text(rest / 100) + "." +
         omnibal::detail::to_text(rest % 100);
}

/// Throws unless a rank that was found fits rank 0.
inline void check_fits(std::string_view function, boot_hello const& rank_0,
                       boot_hello const& found) {
  using omnibal::detail::to_text;
  std::string text;
  if (found.nccl_version != rank_0.nccl_version) {
    text = " has NCCL " + version_text(found.nccl_version) + ", rank 0 has NCCL " +
           version_text(rank_0.nccl_version);
  } else if (found.size != rank_0.size) {
    text = " is in a world of " + to_text(found.size) + " ranks, rank 0 in one of " +
           to_text(rank_0.size);
  }
  if (text.empty()) return;
  throw mismatch(omnibal::detail::message(function, "rank " + to_text(found.rank) + text));
}

/// A new id; with the variable NCCL_COMM_ID one for the whole run.
[[nodiscard]] inline ncclUniqueId new_id() {
  ncclUniqueId id{};
  check(ncclGetUniqueId(&id));
  return id;
}

}  // namespace omnibal::inline v0::nccl::detail
