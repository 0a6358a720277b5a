// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A functor without its type.

#include <type_traits>
#include <utility>

namespace omnibal::inline v0::detail {

template <class Signature>
class function_ref;

/// A reference to a functor without its type, so that a search is compiled once for all functors.
template <class Result, class... Arguments>
class function_ref<Result(Arguments...)> {
 public:
  /// Refers to a functor, which must outlive this object.
  template <class Function>
    requires(!std::is_same_v<std::remove_cvref_t<Function>, function_ref>)
  function_ref(Function const& function)
      : function_(&function), call_([](void const* called, Arguments... arguments) -> Result {
          return (*static_cast<Function const*>(called))(std::forward<Arguments>(arguments)...);
        }) {}

  Result operator()(Arguments... arguments) const {
    return call_(function_, std::forward<Arguments>(arguments)...);
  }

 private:
  void const* function_;
  Result (*call_)(void const*, Arguments...);
};

}  // namespace omnibal::inline v0::detail
