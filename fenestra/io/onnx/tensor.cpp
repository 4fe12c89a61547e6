// Tensors of a model: which bytes are whose, and numbers from them.
#include <fenestra/base/file.hpp>
#include <fenestra/io/numbers.hpp>
#include <fenestra/io/onnx/fields.hpp>
#include <fenestra/io/onnx/tensor_parts.hpp>
#include <fenestra/io/source.hpp>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>
#include <utility>

namespace fenestra::onnx {

namespace {

using Storage = TensorData::Storage;

struct TypeFacts {
  ElementType type;
  const char* name;
  std::optional<io::NumberType> number;
  Storage storage;  ///< the repeated field that holds it where it is not raw
};
constexpr TypeFacts kTypes[] = {
    {ElementType::undefined, "no type", {}, Storage::none},
    {ElementType::float32, "float32", io::NumberType::f32, Storage::floats},
    {ElementType::uint8, "uint8", io::NumberType::u8, Storage::ints},
    {ElementType::int8, "int8", io::NumberType::i8, Storage::ints},
    {ElementType::uint16, "uint16", io::NumberType::u16, Storage::ints},
    {ElementType::int16, "int16", io::NumberType::i16, Storage::ints},
    {ElementType::int32, "int32", io::NumberType::i32, Storage::ints},
    {ElementType::int64, "int64", io::NumberType::i64, Storage::longs},
    {ElementType::string, "string", {}, Storage::strings},
    {ElementType::boolean, "bool", io::NumberType::boolean, Storage::ints},
    {ElementType::float16, "float16", io::NumberType::f16, Storage::ints},
    {ElementType::float64, "float64", io::NumberType::f64, Storage::doubles},
    {ElementType::uint32, "uint32", io::NumberType::u32, Storage::unsigneds},
    {ElementType::uint64, "uint64", io::NumberType::u64, Storage::unsigneds},
    {ElementType::complex64, "complex64", {}, Storage::floats},
    {ElementType::complex128, "complex128", {}, Storage::doubles},
    {ElementType::bfloat16, "bfloat16", io::NumberType::bf16, Storage::ints},
};

const TypeFacts* facts_of(ElementType type) {
  const auto* const found = std::find_if(
      std::begin(kTypes), std::end(kTypes), [&](const TypeFacts& f) { return f.type == type; });
  return found == std::end(kTypes) ? nullptr : found;
}

std::string_view storage_name(Storage storage) {
  switch (storage) {
    case Storage::none: return "no data";
    case Storage::raw: return "raw_data";
    case Storage::floats: return "float_data";
    case Storage::ints: return "int32_data";
    case Storage::longs: return "int64_data";
    case Storage::doubles: return "double_data";
    case Storage::unsigneds: return "uint64_data";
    case Storage::strings: return "string_data";
    case Storage::external: return "external_data";
  }
  return "";
}

bool is_varints(Storage storage) {
  return storage == Storage::ints || storage == Storage::longs || storage == Storage::unsigneds;
}

}  // namespace

std::string type_name(ElementType type) {
  const TypeFacts* const facts = facts_of(type);
  return facts != nullptr ? facts->name : "type " + std::to_string(static_cast<int>(type));
}

std::optional<io::NumberType> number_type(ElementType type) {
  const TypeFacts* const facts = facts_of(type);
  return facts != nullptr ? facts->number : std::nullopt;
}

// --- Reading the message -----------------------------------------------------------------------

void TensorParts::keep(Storage storage, Bytes piece) {
  if (piece.empty() && storage != Storage::strings) {
    return;  // says nothing, and some writers leave one beside the data
  }
  if (tensor_.storage != Storage::none && tensor_.storage != storage) {
    has_two_storages_ = true;
  }
  tensor_.storage = storage;
  if (storage == Storage::raw) {
    tensor_.pieces.clear();  // no repeated field: the last one counts
  }
  tensor_.pieces.push_back(piece);
}

void TensorParts::read(WireReader message) {
  using F = fields::Tensor;
  wire_ = &message.file();
  const auto keep_numbers = [&](const Field& field, Storage storage, WireType single) {
    if (field.type != WireType::bytes && field.type != single) {
      message.refuse_here(field.whole.data(),
                          "numbers in " + std::string(storage_name(storage)),
                          "another wire type");
    }
    keep(storage, field.bytes);
  };
  for (Field field; message.next(field);) {
    if (place_ == nullptr) {
      place_ = field.whole.data();
    }
    switch (field.number) {
      case F::dims:
        for_each_varint(message, field, [&](std::uint64_t dim) {
          if (dims_.size() == kMaxRank) {
            message.refuse_here(
                field.whole.data(), "at most " + std::to_string(kMaxRank) + " extents", "more");
          }
          dims_.push_back(static_cast<std::int64_t>(dim));
        });
        break;
      case F::type: type_ = message.number(field); break;
      case F::name: tensor_.name = message.text(field); break;
      case F::raw: keep(Storage::raw, message.bytes(field)); break;
      case F::floats: keep_numbers(field, Storage::floats, WireType::fixed32); break;
      case F::ints: keep_numbers(field, Storage::ints, WireType::varint); break;
      case F::longs: keep_numbers(field, Storage::longs, WireType::varint); break;
      case F::doubles: keep_numbers(field, Storage::doubles, WireType::fixed64); break;
      case F::unsigneds: keep_numbers(field, Storage::unsigneds, WireType::varint); break;
      case F::strings: keep(Storage::strings, message.bytes(field)); break;
      case F::external: {
        std::pair<std::string, std::string> entry;
        WireReader inner = message.nested(field);
        for (Field part; inner.next(part);) {
          if (part.number == fields::Entry::key) {
            entry.first = inner.text(part);
          } else if (part.number == fields::Entry::value) {
            entry.second = inner.text(part);
          }
        }
        external_.push_back(std::move(entry));
        break;
      }
      case F::location: is_external_ = message.number(field) == 1; break;
      default: break;
    }
  }
}

void TensorParts::refuse(const std::string& expected, const std::string& found) const {
  io::refuse(wire_->name,
             place_ != nullptr ? wire_->offset_of(place_) : 0,
             expected + " of tensor " + io::shown(tensor_.name),
             found,
             "a model that the onnx checker accepts");
}

std::uint64_t TensorParts::stored_elements() const {
  std::uint64_t count = 0;
  for (const Bytes& piece : tensor_.pieces) {
    if (is_varints(tensor_.storage)) {
      count +=
          static_cast<std::uint64_t>(std::count_if(piece.begin(), piece.end(), [](std::byte b) {
            return (b & std::byte{0x80}) == std::byte{0};
          }));
      if (piece.empty() || (piece.back() & std::byte{0x80}) != std::byte{0}) {
        refuse("whole numbers", "the end of a field within one");
      }
    } else {
      const std::size_t width = tensor_.storage == Storage::floats ? 4 : 8;
      if (piece.size() % width != 0) {
        refuse("numbers of " + std::to_string(width) + " bytes",
               std::to_string(piece.size()) + " bytes");
      }
      count += piece.size() / width;
    }
  }
  return count;
}

namespace {

std::uint64_t parse_size(const std::string& text, bool& ok) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  ok = error == std::errc() && end == text.data() + text.size();
  return value;
}

}  // namespace

TensorData TensorParts::finish(std::shared_ptr<const WireFile> file, ExternalFiles& externals) {
  if (wire_ == nullptr) {
    wire_ = file.get();
  }
  if (type_ > static_cast<std::uint64_t>(std::numeric_limits<int>::max())) {
    refuse("an element type", std::to_string(type_));
  }
  tensor_.type = static_cast<ElementType>(type_);
  for (const std::int64_t dim : dims_) {
    tensor_.shape.push_back(dim);
  }
  tensor_.file = std::move(file);
  const std::optional<Index> elements = tensor_.shape.elements();
  if (!elements) {
    refuse("at most " + std::to_string(kMaxElements) + " elements",
           "the shape " + fenestra::to_string(tensor_.shape));
  }
  if (has_two_storages_ || (is_external_ && tensor_.storage != Storage::none)) {
    refuse("data in one place",
           "data in two, one of them " + std::string(storage_name(tensor_.storage)));
  }
  const TypeFacts* const facts = facts_of(tensor_.type);
  if (facts == nullptr || !facts->number) {
    return std::move(tensor_);  // can be carried through, and `read` refuses it
  }
  const auto needed = static_cast<std::uint64_t>(*elements * io::width_of(*facts->number));
  if (is_external_) {
    tensor_.storage = Storage::external;
    for (const auto& [key, value] : external_) {
      bool ok = true;
      if (key == "location") {
        tensor_.external.location = value;
      } else if (key == "offset") {
        tensor_.external.offset = parse_size(value, ok);
      } else if (key == "length") {
        tensor_.external.length = parse_size(value, ok);
      }
      if (!ok) {
        refuse("a decimal " + key + " below 2^64", io::shown(value));
      }
    }
    externals.attach(tensor_, needed);
    return std::move(tensor_);
  }
  if (tensor_.storage == Storage::raw) {
    if (tensor_.pieces[0].size() != needed) {
      refuse(std::to_string(needed) + " bytes for " + std::string(facts->name) + " " +
                 fenestra::to_string(tensor_.shape),
             std::to_string(tensor_.pieces[0].size()) + " bytes");
    }
    return std::move(tensor_);
  }
  if (tensor_.storage == Storage::none) {
    if (*elements != 0) {
      refuse(std::to_string(*elements) + " numbers", "no data");
    }
    return std::move(tensor_);
  }
  if (tensor_.storage != facts->storage) {
    refuse(std::string(facts->name) + " in " + std::string(storage_name(facts->storage)),
           std::string(storage_name(tensor_.storage)));
  }
  if (const std::uint64_t count = stored_elements();
      count != static_cast<std::uint64_t>(*elements)) {
    refuse(
        std::to_string(*elements) + " numbers for the shape " + fenestra::to_string(tensor_.shape),
        std::to_string(count));
  }
  return std::move(tensor_);
}

// --- Data in other files -----------------------------------------------------------------------

void ExternalFiles::attach(TensorData& tensor, std::uint64_t bytes) {
  const TensorData::External& where = tensor.external;
  const std::string whose = tensor.file->name + ": tensor " + io::shown(tensor.name);
  if (where.location.empty()) {
    throw Error(ErrorCode::bad_file,
                whose + " has external data and no location\n  fix: save the model anew");
  }
  if (!folder_) {
    return;
  }
  std::shared_ptr<const InputFile>& file = open_[where.location];
  if (!file) {
    try {
      file = std::make_shared<const InputFile>(InputFile::beneath(*folder_, where.location));
    } catch (const Error& error) {
      throw Error(ErrorCode::bad_file, whose + " is in another file: " + error.what());
    }
  }
  if (where.length && *where.length != bytes) {
    throw Error(ErrorCode::bad_file,
                whose + " " + fenestra::to_string(tensor.shape) + " needs " +
                    std::to_string(bytes) + " bytes, its external data have " +
                    std::to_string(*where.length) + "\n  fix: save the model anew");
  }
  if (where.offset > file->size() || bytes > file->size() - where.offset) {
    throw Error(ErrorCode::bad_file,
                whose + " needs " + std::to_string(bytes) + " bytes from byte " +
                    std::to_string(where.offset) + " of " + io::shown(where.location) +
                    " on, which has " + std::to_string(file->size()) +
                    "\n  fix: the whole file that belongs to the model");
  }
  tensor.external_bytes = [file](std::uint64_t offset, std::span<std::byte> out) {
    file->read(offset, {reinterpret_cast<char*>(out.data()), out.size()});
  };
}

// --- Numbers -----------------------------------------------------------------------------------

namespace {

/// The bytes of the pieces, one after the other.
class Chain {
 public:
  explicit Chain(const std::vector<Bytes>& pieces) : pieces_(&pieces) {}
  void operator()(std::span<std::byte> out) {
    while (!out.empty()) {
      const Bytes rest = (*pieces_)[piece_].subspan(position_);
      const std::size_t count = std::min(rest.size(), out.size());
      std::memcpy(out.data(), rest.data(), count);
      out = out.subspan(count);
      position_ += count;
      if (position_ == (*pieces_)[piece_].size()) {
        ++piece_;
        position_ = 0;
      }
    }
  }

 private:
  const std::vector<Bytes>* pieces_;
  std::size_t piece_ = 0;
  std::size_t position_ = 0;
};

/// Numbers of variable length as bytes of their type.
class Varints {
 public:
  Varints(const TensorData& tensor, io::NumberType type)
      : tensor_(&tensor), type_(type), width_(static_cast<std::size_t>(io::width_of(type))) {}
  void operator()(std::span<std::byte> out) {
    for (; !out.empty(); out = out.subspan(width_)) {
      while (rest_.empty()) {
        rest_ = tensor_->pieces[piece_++];
      }
      const std::byte* const place = rest_.data();
      const std::uint64_t value = take_varint(*tensor_->file, rest_);
      if (!fits(static_cast<std::int64_t>(value))) {
        io::refuse(tensor_->file->name,
                   tensor_->file->offset_of(place),
                   "a number that " + type_name(tensor_->type) + " holds, in tensor " +
                       io::shown(tensor_->name),
                   std::to_string(static_cast<std::int64_t>(value)));
      }
      std::memcpy(out.data(), &value, width_);
    }
  }

 private:
  bool fits(std::int64_t value) const {
    switch (type_) {
      case io::NumberType::boolean:
      case io::NumberType::u8: return std::in_range<std::uint8_t>(value);
      case io::NumberType::i8: return std::in_range<std::int8_t>(value);
      case io::NumberType::i16: return std::in_range<std::int16_t>(value);
      case io::NumberType::u16:
      case io::NumberType::f16:
      case io::NumberType::bf16: return std::in_range<std::uint16_t>(value);
      // Some writers leave the upper half of a negative number away.
      case io::NumberType::i32:
        return std::in_range<std::int32_t>(value) || std::in_range<std::uint32_t>(value);
      case io::NumberType::u32: return std::in_range<std::uint32_t>(value);
      default: return true;
    }
  }

  const TensorData* tensor_;
  io::NumberType type_;
  std::size_t width_;
  std::size_t piece_ = 0;
  Bytes rest_;
};

}  // namespace

template <class T>
Tensor<T> TensorData::read() const {
  const std::optional<io::NumberType> number = number_type(type);
  if (!number) {
    throw Error(ErrorCode::bad_file,
                file->name + ": tensor " + io::shown(name) + " is of " + type_name(type) +
                    ", which is not read\n  fix: floating-point numbers of 16 bits and more, "
                    "integers or truth values");
  }
  io::StoredNumbers stored{.type = *number, .file = file->name};
  if (storage == Storage::external) {
    if (!external_bytes) {
      throw Error(ErrorCode::bad_file,
                  file->name + ": tensor " + io::shown(name) + " is in another file, " +
                      io::shown(external.location) +
                      ", and a model in memory has none beside it\n  fix: read the model from its "
                      "file");
    }
    stored.file = external.location;
    stored.offset = external.offset;
    return io::read_tensor<T>(
        stored,
        [this, offset = external.offset](std::span<std::byte> out) mutable {
          external_bytes(offset, out);
          offset += out.size();
        },
        shape);
  }
  if (!pieces.empty()) {
    stored.offset = file->offset_of(pieces[0].data());
  }
  if (is_varints(storage)) {
    return io::read_tensor<T>(stored, Varints(*this, *number), shape);
  }
  return io::read_tensor<T>(stored, Chain(pieces), shape);
}

template Tensor<float> TensorData::read() const;
template Tensor<double> TensorData::read() const;
template Tensor<Index> TensorData::read() const;

io::AnyTensor TensorData::read_nearest() const {
  const std::optional<io::NumberType> number = number_type(type);
  return io::read_nearest(number.value_or(io::NumberType::f32),
                          [&]<class T>(T) { return io::AnyTensor(read<T>()); });
}

}  // namespace fenestra::onnx
