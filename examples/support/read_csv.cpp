#include "csv_records.hpp"
#include "input_error.hpp"
#include "readers.hpp"

#include <array>

namespace examples {

void read_csv(file_text const& text, field_names const& fields, progress& shown,
              std::vector<sample>& samples) {
  if (fields.images.empty()) {
    auto const take_tokens = [&](position const& where, std::array<char*, 1> const& values) {
      samples.push_back({0, parse_count(where, fields.tokens, values[0])});
      shown.update(where.record, 0);
    };
    return for_each_csv_record(text, take_tokens, fields.tokens);
  }
  auto const take = [&](position const& where, std::array<char*, 2> const& values) {
    samples.push_back({parse_count(where, fields.images, values[0]),
                       parse_count(where, fields.tokens, values[1])});
    shown.update(where.record, 0);
  };
  for_each_csv_record(text, take, fields.images, fields.tokens);
}

}  // namespace examples
