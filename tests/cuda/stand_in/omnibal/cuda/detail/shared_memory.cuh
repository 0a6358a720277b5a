// SPDX-License-Identifier: Apache-2.0
#pragma once

// In place of the header of the library: shared memory of the stand-in.

namespace omnibal::inline v0::gpu::detail {

[[nodiscard]] inline unsigned char* shared_memory() { return stand_in::dynamic_shared_memory(); }

}  // namespace omnibal::inline v0::gpu::detail
