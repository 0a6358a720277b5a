// SPDX-License-Identifier: Apache-2.0
#include "cluster.hpp"

#include <omnibal/cost/machines.hpp>

namespace examples {

std::vector<cluster> const& known_clusters() {
  namespace machines = omnibal::machines;
  constexpr std::int64_t gigabyte = 1'000'000'000;
  static std::vector<cluster> const result{
      {"a100_infiniband", machines::a100_infiniband, 80 * gigabyte, 312e12},
      {"a100_omnipath", machines::a100_omnipath, 80 * gigabyte, 312e12},
      {"a100_roce", machines::a100_roce, 80 * gigabyte, 312e12},
      {"a100_fsdp", machines::a100_fsdp, 80 * gigabyte, 312e12},
      {"h100", machines::h100, 80 * gigabyte, 989e12},
      {"h100_fsdp", machines::h100_fsdp, 80 * gigabyte, 989e12},
      {"h100_500w", machines::h100_500w, 96 * gigabyte, 989e12},
      {"b200", machines::b200, 180 * gigabyte, 2250e12},
      {"b300", machines::b300, 270 * gigabyte, 2250e12},
      {"gb200", machines::gb200, 184 * gigabyte, 2450e12},
      {"gb300", machines::gb300, 277 * gigabyte, 2450e12},
  };
  return result;
}

}  // namespace examples
