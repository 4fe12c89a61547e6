// Descriptions as text.
#include <fenestra/io/json.hpp>
#include <fenestra/nn/description.hpp>

#include <charconv>
#include <cmath>

namespace fenestra::nn {

namespace {

/// A U-Net of many levels nests four times in each.
constexpr int kMostNested = 100;

Description read(io::JsonReader& reader) {
  switch (reader.next()) {
    case '{': {
      Description::Fields fields;
      reader.object([&](const std::string& key) { fields.emplace_back(key, read(reader)); });
      return fields;
    }
    case '[': {
      Description::List list;
      reader.array([&] { list.push_back(read(reader)); });
      return list;
    }
    case '"': return reader.string();
    case 't':
    case 'f': return reader.boolean();
    default: return reader.number();
  }
}

/// The shortest text that reads back as the same number.
std::string number_text(double number) {
  char text[32];
  const auto [end, failure] = std::to_chars(text, text + sizeof text, number);
  return failure == std::errc() ? std::string(text, end) : std::string("0");
}

void write(const Description& description, std::string& out) {
  const char* separator = "";
  if (const bool* flag = description.boolean()) {
    out += *flag ? "true" : "false";
  } else if (const double* number = description.number()) {
    out += number_text(*number);
  } else if (const std::string* word = description.word()) {
    out += io::json_string(*word);
  } else if (const Description::List* list = description.list()) {
    out += '[';
    for (const Description& item : *list) {
      out += separator;
      write(item, out);
      separator = ", ";
    }
    out += ']';
  } else {
    out += '{';
    for (const auto& [name, value] : *description.fields()) {
      out += separator + io::json_string(name) + ": ";
      write(value, out);
      separator = ", ";
    }
    out += '}';
  }
}

/// A value without what JSON needs: 3, 3x3, same.
std::string plain_text(const Description& value) {
  if (value.word() != nullptr) {
    return *value.word();
  }
  const Description::List* list = value.list();
  if (list == nullptr) {
    return value.text();
  }
  std::string out;
  for (const Description& item : *list) {
    const bool is_pair = item.list() != nullptr && item.list()->size() == 2;
    out += (out.empty() ? "" : "x") +
           (is_pair ? plain_text((*item.list())[0]) + ":" + plain_text((*item.list())[1])
                    : plain_text(item));
  }
  return out;
}

/// The layers that a field holds, with the names of their places.
std::vector<std::pair<std::string, const Description*>> parts_of(const Description& layer,
                                                                 const std::string& field,
                                                                 const Description& value) {
  std::vector<std::pair<std::string, const Description*>> parts;
  if (value.find("layer") != nullptr) {
    parts.emplace_back(field, &value);
  } else if (value.list() != nullptr && !value.list()->empty() &&
             value.list()->front().find("layer") != nullptr) {
    const Description* names = layer.find("names");
    for (std::size_t i = 0; i < value.list()->size(); ++i) {
      const bool is_named = names != nullptr && names->list() != nullptr &&
                            i < names->list()->size() && (*names->list())[i].word() != nullptr;
      parts.emplace_back(is_named ? *(*names->list())[i].word() : std::to_string(i),
                         &(*value.list())[i]);
    }
  }
  return parts;
}

void outline_layer(const Description& layer, std::size_t indent, std::string& out) {
  std::string options;
  std::string inside;
  for (const auto& [name, value] : *layer.fields()) {
    const auto parts = parts_of(layer, name, value);
    for (const auto& [part_name, part] : parts) {
      inside += "\n" + std::string(indent + 2, ' ') + part_name + ": ";
      outline_layer(*part, indent + 2, inside);
    }
    if (parts.empty() && name != "layer" && name != "names") {
      options += (options.empty() ? "" : ", ") + name + "=" + plain_text(value);
    }
  }
  out += layer.kind() + (options.empty() ? "" : "(" + options + ")") + inside;
}

}  // namespace

Description Description::parse(std::string_view text) {
  constexpr std::string_view kWhere = "description of a layer";
  if (const std::size_t at = io::first_not_utf8(text); at != std::string_view::npos) {
    throw Error(ErrorCode::bad_file,
                std::string(kWhere) + ": byte " + std::to_string(at) +
                    " is not UTF-8\n  fix: JSON, as describe() gives it");
  }
  io::JsonReader reader(text, kWhere, 0, kMostNested);
  Description result = read(reader);
  reader.end();
  return result;
}

std::string Description::text() const {
  std::string out;
  write(*this, out);
  return out;
}

std::string Description::outline() const {
  if (find("layer") == nullptr) {
    return plain_text(*this);
  }
  std::string out;
  outline_layer(*this, 0, out);
  return out;
}

const Description* Description::find(std::string_view name) const {
  if (const Fields* all = fields()) {
    for (const auto& [key, value] : *all) {
      if (key == name) {
        return &value;
      }
    }
  }
  return nullptr;
}

const std::string& Description::kind() const {
  const Description* kind = find("layer");
  if (kind == nullptr || kind->word() == nullptr) {
    throw Error(ErrorCode::bad_file,
                "description of a layer: " + text().substr(0, 60) +
                    " has no \"layer\"\n  fix: an object such as {\"layer\": \"relu\"}");
  }
  return *kind->word();
}

}  // namespace fenestra::nn
