#pragma once

/// \file
/// The order in which an epoch takes its samples.

namespace omnibal::inline v0 {

/// The order in which an epoch takes its samples.
enum class sample_order {
  /// A random one, another in every epoch.
  shuffled,
  /// That of their indices.
  given,
};

}  // namespace omnibal::inline v0
