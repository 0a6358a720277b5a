// SPDX-License-Identifier: Apache-2.0
#pragma once

// The atomic functions of device code, for threads of the host: no other access is put in order,
// but by fences before and after them.

#include "launch.hpp"

#include <type_traits>

namespace stand_in {}  // namespace stand_in

template <class T>
T atomicAdd(T* word, std::type_identity_t<T> value) {
  stand_in::change_word(word);
  return __atomic_fetch_add(word, value, __ATOMIC_RELAXED);
}
template <class T>
T atomicOr(T* word, std::type_identity_t<T> value) {
  stand_in::change_word(word);
  return __atomic_fetch_or(word, value, __ATOMIC_RELAXED);
}
template <class T>
T atomicMin(T* word, std::type_identity_t<T> value) {
  stand_in::change_word(word);
  T before = __atomic_load_n(word, __ATOMIC_RELAXED);
  while (value < before && !__atomic_compare_exchange_n(word, &before, value, true,
                                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
  return before;
}
