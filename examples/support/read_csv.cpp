#include "csv_records.hpp"
#include "input_error.hpp"
#include "readers.hpp"

#include <array>
#include <cstddef>
#include <string_view>

namespace examples {

namespace {

template <char Separator>
void read_separated(file_text const& text, record_fields const& fields, progress& shown,
                    dataset& data) {
  auto const& names = fields.names();
  auto const take = [&](position const& where, auto const& values) {
    record_fields::counts counts{};
    for (std::size_t i = 0; i != values.size(); ++i) {
      counts[i] = parse_count(where, names[i], values[i]);
    }
    data.samples.push_back(fields.make(where, counts));
    shown.update(where.record, 0);
  };
  switch (names.size()) {
    case 1: return for_each_csv_record<Separator>(text, take, names[0]);
    case 2: return for_each_csv_record<Separator>(text, take, names[0], names[1]);
    default: for_each_csv_record<Separator>(text, take, names[0], names[1], names[2]);
  }
}

}  // namespace

void read_csv(file_text const& text, record_fields const& fields, progress& shown, dataset& data) {
  if (fields.has_images()) data.kind = sample_kind::images_and_text;
  std::string_view const header = text.view().substr(0, text.view().find_first_of("\r\n"));
  if (header.find('\t') != header.npos) {
    read_separated<'\t'>(text, fields, shown, data);
  } else if (header.find(';') != header.npos && header.find(',') == header.npos) {
    read_separated<';'>(text, fields, shown, data);
  } else {
    read_separated<','>(text, fields, shown, data);
  }
}

}  // namespace examples
