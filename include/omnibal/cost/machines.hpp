// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Machines whose constants were fitted to published runs, and start values for other fits.

#include <omnibal/config.hpp>
#include <omnibal/cost/machine.hpp>

namespace omnibal::inline v0::machines {

/// A start for fits: rough rates of an A100 with 80 GB, and 200 Gb/s for two devices.
inline constexpr machine a100_start{
    .matmul_flops_per_second = 250e12,
    .fp8_gain = 1,
    .operand_bytes_per_second = 2e12,
    .memory_bytes_per_second = 1.5e12,
    .attention_flops_per_second = 100e12,
    .node_bytes_per_second = 230e9,
    .network_bytes_per_second = 10e9,
    .exchange_bytes_per_second = 100e9,
    .hop_seconds = 30e-6,
    .launch_seconds = 0.5e-3,
};

/// A start for fits: rough rates of an H100 SXM, and 400 Gb/s for each device.
inline constexpr machine h100_start{
    .matmul_flops_per_second = 700e12,
    .fp8_gain = 2,
    .operand_bytes_per_second = 4e12,
    .memory_bytes_per_second = 2.4e12,
    .attention_flops_per_second = 400e12,
    .node_bytes_per_second = 350e9,
    .network_bytes_per_second = 40e9,
    .exchange_bytes_per_second = 100e9,
    .hop_seconds = 10e-6,
    .launch_seconds = 0.5e-3,
};

/// A start for fits: rough rates of a B200, and 400 Gb/s for each device.
inline constexpr machine b200_start{
    .matmul_flops_per_second = 1.4e15,
    .fp8_gain = 2,
    .operand_bytes_per_second = 4e12,
    .memory_bytes_per_second = 5.6e12,
    .attention_flops_per_second = 900e12,
    .node_bytes_per_second = 700e9,
    .network_bytes_per_second = 40e9,
    .exchange_bytes_per_second = 300e9,
    .hop_seconds = 10e-6,
    .launch_seconds = 0.1e-3,
};

/// A start for fits: `b200_start` with 72 devices in a node.
inline constexpr machine gb200_start = [] {
  machine result = b200_start;
  result.devices_per_node = 72;
  return result;
}();

/// A100 with 80 GB, 800 Gb/s between nodes, Megatron-DeepSpeed with unfused attention. Fitted to
/// 132 runs of vTrain (Bang et al., MICRO 2024); the memory rate is from the data sheet. For 1,600
/// Gb/s, as in DGX SuperPODs, double `network_bytes_per_second`.
inline constexpr machine a100_infiniband{
    .matmul_flops_per_second = 281e12,
    .fp8_gain = 1,
    .operand_bytes_per_second = 1.73e12,
    .memory_bytes_per_second = 1.5e12,
    .attention_flops_per_second = 100e12,
    .node_bytes_per_second = 487e9,
    .network_bytes_per_second = 10e9,
    .exchange_bytes_per_second = 100e9,
    .hop_seconds = 38e-6,
    .launch_seconds = 1.2e-3,
};

/// A100 with 80 GB, 400 Gb/s Omni-Path between nodes, Megatron-DeepSpeed. The rates of matrix
/// products and of the node and the duration of hops were fitted to 39 runs of the prequel of BLOOM
/// (BigScience, 2022). These runs determine the rates of products and of the node only partly,
/// because one can compensate for the other.
inline constexpr machine a100_omnipath{
    .matmul_flops_per_second = 228e12,
    .fp8_gain = 1,
    .operand_bytes_per_second = 2e12,
    .memory_bytes_per_second = 1.5e12,
    .attention_flops_per_second = 100e12,
    .node_bytes_per_second = 179e9,
    .network_bytes_per_second = 5e9,
    .exchange_bytes_per_second = 100e9,
    .hop_seconds = 126e-6,
    .launch_seconds = 0.5e-3,
};

/// A100 with 80 GB, 400 Gb/s RoCE between nodes, InternEvo. The rates of matrix products and of the
/// network and the duration of hops were fitted to 21 runs of a model of 7B parameters on up to
/// 1,024 devices.
inline constexpr machine a100_roce{
    .matmul_flops_per_second = 217e12,
    .fp8_gain = 1,
    .operand_bytes_per_second = 2e12,
    .memory_bytes_per_second = 1.5e12,
    .attention_flops_per_second = 100e12,
    .node_bytes_per_second = 230e9,
    .network_bytes_per_second = 2.7e9,
    .exchange_bytes_per_second = 100e9,
    .hop_seconds = 48e-6,
    .launch_seconds = 0.5e-3,
};

/// A100 with 40 or 80 GB, 1,600 Gb/s between nodes, PyTorch FSDP in eager mode. The rates of matrix
/// products, memory, attention and network were fitted to 31 runs of LLM Foundry; these runs hardly
/// determine the duration of hops.
inline constexpr machine a100_fsdp{
    .matmul_flops_per_second = 264e12,
    .fp8_gain = 1,
    .operand_bytes_per_second = 2e12,
    .memory_bytes_per_second = 425e9,
    .attention_flops_per_second = 99e12,
    .node_bytes_per_second = 230e9,
    .network_bytes_per_second = 5.3e9,
    .exchange_bytes_per_second = 100e9,
    .hop_seconds = 7e-6,
    .launch_seconds = 0.5e-3,
};

/// H100 SXM with PyTorch FSDP in eager mode. The rates of matrix products, memory, attention and
/// network and the duration of hops were fitted to 22 runs of LLM Foundry in bf16.
inline constexpr machine h100_fsdp{
    .matmul_flops_per_second = 731e12,
    .fp8_gain = 2,
    .operand_bytes_per_second = 4e12,
    .memory_bytes_per_second = 756e9,
    .attention_flops_per_second = 177e12,
    .node_bytes_per_second = 350e9,
    .network_bytes_per_second = 21e9,
    .exchange_bytes_per_second = 100e9,
    .hop_seconds = 6.2e-6,
    .launch_seconds = 0.5e-3,
};

/// H100 with HBM2e, limited to 500 W, torchtitan. The rates of matrix products, FP8, attention and
/// node were fitted to 16 runs, compiled or not. These runs differ in more than the model
/// describes.
inline constexpr machine h100_500w{
    .matmul_flops_per_second = 439e12,
    .fp8_gain = 2,
    .operand_bytes_per_second = 4e12,
    .memory_bytes_per_second = 2.4e12,
    .attention_flops_per_second = 191e12,
    .node_bytes_per_second = 167e9,
    .network_bytes_per_second = 20e9,
    .exchange_bytes_per_second = 100e9,
    .hop_seconds = 10e-6,
    .launch_seconds = 0.5e-3,
};

/// H100 SXM with 400 Gb/s for each device, NeMo and Megatron-Bridge. The rates of matrix products
/// and FP8 were fitted to 65 runs of dense models, the exchange rate to runs of mixtures of
/// experts.
inline constexpr machine h100{
    .matmul_flops_per_second = 689e12,
    .fp8_gain = 2.01,
    .operand_bytes_per_second = 4e12,
    .memory_bytes_per_second = 2.4e12,
    .attention_flops_per_second = 400e12,
    .node_bytes_per_second = 350e9,
    .network_bytes_per_second = 40e9,
    .exchange_bytes_per_second = 37e9,
    .hop_seconds = 10e-6,
    .launch_seconds = 0.5e-3,
};

/// B200 SXM, Megatron-LM and Megatron-Bridge. The rates of matrix products and of the node were
/// fitted to bf16 runs of a model of four layers, the rate of FP8 to another model, and the
/// exchange rate to mixtures of experts.
inline constexpr machine b200{
    .matmul_flops_per_second = 1.02e15,
    .fp8_gain = 3.15,
    .operand_bytes_per_second = 4e12,
    .memory_bytes_per_second = 5.6e12,
    .attention_flops_per_second = 900e12,
    .node_bytes_per_second = 280e9,
    .network_bytes_per_second = 40e9,
    .exchange_bytes_per_second = 146e9,
    .hop_seconds = 10e-6,
    .launch_seconds = 0.1e-3,
};

/// GB200 in racks of 72, NeMo and Megatron-Bridge. The rates of matrix products and FP8 were fitted
/// to 36 runs of dense models, the exchange rate to runs of mixtures of experts.
inline constexpr machine gb200{
    .matmul_flops_per_second = 1.42e15,
    .fp8_gain = 2.22,
    .operand_bytes_per_second = 4e12,
    .memory_bytes_per_second = 5.6e12,
    .attention_flops_per_second = 900e12,
    .node_bytes_per_second = 700e9,
    .network_bytes_per_second = 40e9,
    .exchange_bytes_per_second = 531e9,
    .hop_seconds = 10e-6,
    .launch_seconds = 0.1e-3,
    .devices_per_node = 72,
};

/// GB300 in racks of 72. Products in bf16 have the rate of `gb200`. The gain of FP8 was fitted to
/// 24 runs of dense models, and the exchange rate to runs of mixtures of experts.
inline constexpr machine gb300 = [] {
  machine result = gb200;
  result.fp8_gain = 3.3;
  result.exchange_bytes_per_second = 890e9;
  return result;
}();

/// B300 SXM: the rates of `gb300` in nodes of 8. Only the exchange rate was fitted, to 14 runs of
/// mixtures of experts.
inline constexpr machine b300 = [] {
  machine result = gb300;
  result.devices_per_node = 8;
  result.node_bytes_per_second = b200.node_bytes_per_second;
  result.exchange_bytes_per_second = 191e9;
  return result;
}();

}  // namespace omnibal::inline v0::machines
