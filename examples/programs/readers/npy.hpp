// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Arrays in NumPy's file format, version 1.0.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <span>
#include <string>
#include <type_traits>

namespace examples {

/// Writes `values` as an array of this shape, row by row; `numpy.load` reads it on any machine,
/// because the header names the byte order of the one that wrote it.
///
/// The file: the magic "\x93NUMPY", version bytes 1 and 0, the length of the header in two bytes,
/// little end first, a Python dictionary as header, padded so that the data begin at a multiple of
/// 64, data. Precondition: the product of `shape` is the number of values.
template <class T>
  requires std::is_integral_v<T>
void write_npy(std::ostream& out, std::span<T const> values, std::span<std::size_t const> shape) {
  std::string dimensions;
  for (std::size_t const extent : shape) dimensions += std::to_string(extent) + ", ";

  std::string header = "{'descr': '";
  header += sizeof(T) == 1 ? '|' : std::endian::native == std::endian::little ? '<' : '>';
  header += std::is_signed_v<T> ? 'i' : 'u';
  header +=
      std::to_string(sizeof(T)) + "', 'fortran_order': False, 'shape': (" + dimensions + "), }";

  constexpr std::size_t preamble_bytes = 10;
  constexpr std::size_t alignment = 64;
  while ((preamble_bytes + header.size() + 1) % alignment != 0) header += ' ';
  header += '\n';

  out << "\x93NUMPY" << '\x01' << '\x00' << static_cast<char>(header.size() & 0xff)
      << static_cast<char>(header.size() >> 8) << header;
  out.write(reinterpret_cast<char const*>(values.data()),
            static_cast<std::streamsize>(values.size_bytes()));
}

}  // namespace examples
