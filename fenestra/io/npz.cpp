// .npz: a zip archive (zip.hpp) of .npy files (npy_header.hpp).
#include <fenestra/base/file.hpp>
#include <fenestra/io/json.hpp>
#include <fenestra/io/npy_header.hpp>
#include <fenestra/io/npz.hpp>
#include <fenestra/io/numbers.hpp>
#include <fenestra/io/zip.hpp>

#include <functional>
#include <map>
#include <utility>

namespace fenestra::io {

namespace {

constexpr std::string_view kEnding = ".npy";

}  // namespace

struct NpzReader::Contents {
  ByteSource source;
  NpzReadOptions options;
  std::vector<ZipMember> members;
  std::vector<std::string> names;
  std::map<std::string, std::size_t, std::less<>> by_name;

  Contents(ByteSource from, const NpzReadOptions& given)
      : source(std::move(from)), options(given), members(read_zip_directory(source)) {
    for (const ZipMember& member : members) {
      if (!member.name.ends_with(kEnding)) {
        refuse(source.name(),
               member.header_at,
               "arrays only, with names that end in .npy",
               shown(member.name),
               "an archive that numpy.savez wrote");
      }
      std::string name = member.name.substr(0, member.name.size() - kEnding.size());
      by_name.emplace(name, names.size());
      names.push_back(std::move(name));
    }
  }

  const ZipMember& member(std::string_view name) const {
    const auto found = by_name.find(name);
    if (found == by_name.end()) {
      throw Error(ErrorCode::bad_file,
                  source.name() + ": no array is called " + shown(name) + " among " +
                      std::to_string(names.size()) + "\n  fix: a name from names()");
    }
    return members[found->second];
  }
};

NpzReader::NpzReader(const std::filesystem::path& path, const NpzReadOptions& options)
    : contents_(std::make_shared<const Contents>(ByteSource::file(path), options)) {}

NpzReader::NpzReader(std::span<const std::byte> bytes,
                     std::string name,
                     const NpzReadOptions& options)
    : contents_(
          std::make_shared<const Contents>(ByteSource::memory(bytes, std::move(name)), options)) {}

const std::vector<std::string>& NpzReader::names() const { return contents_->names; }

NpzArray NpzReader::array(std::string_view name) const {
  const ZipMember& member = contents_->member(name);
  ZipMemberReader reader(contents_->source, member);
  const NpyHeader header = read_npy_header(
      [&](std::span<std::byte> out) { reader.read(out); }, member.size, reader.name());
  return {.type = header.type, .shape = header.shape};
}

template <class T>
Tensor<T> NpzReader::read(std::string_view name) const {
  const ZipMember& member = contents_->member(name);
  ZipMemberReader reader(contents_->source, member);
  if (member.is_deflated && member.size > contents_->options.max_inflated_bytes) {
    refuse(reader.name(),
           member.header_at,
           "at most " + std::to_string(contents_->options.max_inflated_bytes) + " bytes, inflated",
           std::to_string(member.size),
           "a larger max_inflated_bytes, if the file is to be trusted");
  }
  const ReadBytes read = [&](std::span<std::byte> out) { reader.read(out); };
  // The header is held against the size of the member before the tensor is allocated.
  const NpyHeader header = read_npy_header(read, member.size, reader.name());
  Tensor<T> tensor = read_npy_array<T>(header, read, reader.name());
  reader.finish();
  return tensor;
}

template Tensor<float> NpzReader::read(std::string_view) const;
template Tensor<double> NpzReader::read(std::string_view) const;
template Tensor<Index> NpzReader::read(std::string_view) const;

TensorMap load_npz(const std::filesystem::path& path, const NpzReadOptions& options) {
  const NpzReader reader(path, options);
  TensorMap tensors;
  for (const std::string& name : reader.names()) {
    tensors.emplace(name, read_nearest(reader.array(name).type, [&]<class T>(T) {
                      return AnyTensor(reader.read<T>(name));
                    }));
  }
  return tensors;
}

void save_npz(const std::filesystem::path& path,
              const TensorMap& tensors,
              const NpzOptions& options) {
  constexpr std::size_t kLongestName = 65535 - kEnding.size();
  for (const auto& [name, tensor] : tensors) {
    if (first_not_utf8(name) != std::string::npos || name.find('\0') != std::string::npos ||
        name.size() > kLongestName) {
      throw Error(ErrorCode::bad_file,
                  path.string() +
                      ": cannot be written: names are UTF-8 without a zero byte, of at "
                      "most " +
                      std::to_string(kLongestName) + " bytes, and " + shown(name) +
                      " is not\n  fix: another name");
    }
  }
  OutputFile file(path);
  ZipWriter zip(file, {.deflate = options.deflate});
  for (const auto& [name, any] : tensors) {
    std::visit(
        [&]<class T>(const Tensor<T>& tensor) {
          const auto bytes = std::as_bytes(tensor.values());
          zip.add(name + std::string(kEnding),
                  {npy_header<T>(tensor.shape()),
                   {reinterpret_cast<const char*>(bytes.data()), bytes.size()}});
        },
        any);
  }
  zip.finish();
  file.commit();
}

}  // namespace fenestra::io
