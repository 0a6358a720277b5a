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

enum class boot_verdict : std::uint32_t { welcome, other_version, other_size, bad_rank, taken };

/// What rank 0 answers.
struct boot_answer {
  boot_hello rank_0;
  boot_verdict verdict = boot_verdict::welcome;
  /// The rank that does not fit.
  std::uint32_t culprit = 0;
  boot_hello found;
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

/// Whether `hello` fits that of rank 0.
[[nodiscard]] inline boot_verdict judge(boot_hello const& rank_0, boot_hello const& hello) {
  if (hello.nccl_version != rank_0.nccl_version) return boot_verdict::other_version;
  if (hello.size != rank_0.size) return boot_verdict::other_size;
  if (hello.rank == 0 || hello.rank >= rank_0.size) return boot_verdict::bad_rank;
  return boot_verdict::welcome;
}

/// As NCCL writes its versions: 2.28.9.
[[nodiscard]] inline std::string version_text(std::int32_t version) {
  int const major = version >= 10000 ? version / 10000 : version / 1000;
  int const rest = version >= 10000 ? version % 10000 : version % 1000;
  return omnibal::detail::to_text(major) + "." + omnibal::detail::to_text(rest / 100) + "." +
         omnibal::detail::to_text(rest % 100);
}

/// Throws unless all fit.
inline void check_verdict(std::string_view function, boot_answer const& answer) {
  using omnibal::detail::to_text;
  std::string const who = "rank " + to_text(answer.culprit);
  std::string text;
  switch (answer.verdict) {
    case boot_verdict::welcome: return;
    case boot_verdict::other_version:
      text = who + " has NCCL " + version_text(answer.found.nccl_version) + ", rank 0 has NCCL " +
             version_text(answer.rank_0.nccl_version);
      break;
    case boot_verdict::other_size:
      text = who + " is in a world of " + to_text(answer.found.size) + " ranks, rank 0 in one of " +
             to_text(answer.rank_0.size);
      break;
    case boot_verdict::bad_rank:
      text = "a process calls itself " + who + ", which is not one of the others in a world of " +
             to_text(answer.rank_0.size) + " ranks";
      break;
    case boot_verdict::taken: text = "two processes call themselves " + who; break;
  }
  throw mismatch(omnibal::detail::message(function, text));
}

/// A new id, made by rank 0.
[[nodiscard]] inline ncclUniqueId new_id() {
  ncclUniqueId id{};
  check(ncclGetUniqueId(&id));
  return id;
}

}  // namespace omnibal::inline v0::nccl::detail
