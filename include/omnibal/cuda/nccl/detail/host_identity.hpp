#pragma once

/// \file
/// A number that is equal for processes on the same host.

#include <omnibal/rng/engine.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include <unistd.h>

namespace omnibal::inline v0::nccl::detail {

/// A digest of text.
[[nodiscard]] inline std::uint64_t digest_of_text(std::string_view text) {
  std::uint64_t digest = text.size();
  for (char const c : text) digest = rng::mix(digest + static_cast<unsigned char>(c) + 1);
  return digest;
}

/// From `NCCL_HOSTID`, or from the name of the host and the id of its last start: containers on one
/// host may have equal names on different hosts, or different names on one.
[[nodiscard]] inline std::uint64_t host_identity() {
  if (char const* const given = std::getenv("NCCL_HOSTID"); given != nullptr) {
    return digest_of_text(given);
  }
  char name[256] = {};
  std::string identity = ::gethostname(name, sizeof(name) - 1) == 0 ? name : "";
  if (std::FILE* const file = std::fopen("/proc/sys/kernel/random/boot_id", "r")) {
    char boot[64] = {};
    if (std::fgets(boot, sizeof(boot), file) != nullptr) identity += boot;
    std::fclose(file);
  }
  return digest_of_text(identity);
}

}  // namespace omnibal::inline v0::nccl::detail
