#pragma once

/// \file
/// The error of a rank that depends on another one.

#include <stdexcept>

namespace omnibal::inline v0 {

/// What a rank throws where another one has failed or left. The text names that rank, whose own
/// exception has the reason.
class communication_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace omnibal::inline v0
