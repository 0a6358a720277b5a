// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Any bytes as text of an XML file.

#include <string>
#include <string_view>

namespace examples {

/// `text` with `&`, `<`, `>` and quotes escaped, for elements and for attributes. What XML does not
/// allow, control characters and bytes that are not UTF-8, becomes the replacement character.
[[nodiscard]] std::string xml_text(std::string_view text);

}  // namespace examples
