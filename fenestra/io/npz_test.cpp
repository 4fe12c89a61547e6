// .npz in and out: NumPy's files and NumPy as a reader, everything that is refused, damage of any
// kind. Archives are taken apart and put together here byte by byte.
#include <fenestra/io/files_test.hpp>
#include <fenestra/io/npz.hpp>
#include <fenestra/io/zip.hpp>

#include <zlib.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace fenestra::io {
namespace {

using Npz = Files;

NpzReader parse(std::span<const std::byte> bytes) { return {bytes, "it"}; }

/// All arrays as doubles.
std::map<std::string, Tensor<double>> arrays_of(const NpzReader& reader) {
  std::map<std::string, Tensor<double>> arrays;
  for (const std::string& name : reader.names()) {
    arrays.emplace(name, reader.read<double>(name));
  }
  return arrays;
}
std::map<std::string, Tensor<double>> parse_all(std::span<const std::byte> bytes) {
  return arrays_of(parse(bytes));
}

std::string number(std::uint64_t value, int width) {
  std::string bytes;
  for (int i = 0; i < width; ++i) {
    bytes += static_cast<char>((value >> (8 * i)) & 0xff);
  }
  return bytes;
}

std::string npy(const std::string& bytes, const std::string& shape = "(2,)") {
  std::string text = "{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + ", }";
  text.resize(63, ' ');
  return std::string("\x93NUMPY\1\0\x40\0", 10) + text + "\n" + bytes;
}
const std::string kTwo = npy(std::string("\0\0\x80\x3f\0\0\0\x40", 8));  // 1 and 2
const Tensor<double> kOneTwo(Shape{2}, {1, 2});

std::string deflated(const std::string& bytes) {
  std::string out(compressBound(bytes.size()), '\0');
  uLongf size = out.size();
  compress(reinterpret_cast<Bytef*>(out.data()),
           &size,
           reinterpret_cast<const Bytef*>(bytes.data()),
           bytes.size());
  return out.substr(2, size - 6);  // without zlib's own header and checksum
}

/// A member, with everything that can be wrong about it.
struct Member {
  std::string name = "x.npy";
  std::string content = kTwo;
  std::string stored = {};  ///< empty: the content
  std::uint32_t method = 0;
  std::uint32_t flags = 0;
  std::string local_extra = {};
  std::string extra = {};
  std::uint64_t wrong_checksum = 0;  ///< added to the right one
  std::int64_t size = -1;            ///< -1: the right one
  std::int64_t stored_size = -1;
  std::int64_t local_size = -1;
  std::int64_t local_stored_size = -1;
  std::int64_t offset = -1;
  std::string local_name = {};  ///< empty: the name
  std::uint32_t disk = 0;
};

struct Archive {
  std::vector<Member> members = {};
  std::string before = {};  ///< the directory
  std::string comment = {};
  std::int64_t count = -1;
  std::int64_t directory_at = -1;
  std::int64_t directory_size = -1;
  std::uint32_t disk = 0;
  std::string extra_in_directory = {};

  std::string bytes() const {
    const auto or_else = [](std::int64_t given, std::uint64_t right) {
      return given < 0 ? right : static_cast<std::uint64_t>(given);
    };
    std::string out;
    std::string directory;
    for (const Member& m : members) {
      const std::string stored = m.stored.empty() ? m.content : m.stored;
      const std::uint64_t start = out.size();
      const std::uint64_t checksum =
          crc32_z(0, reinterpret_cast<const Bytef*>(m.content.data()), m.content.size()) +
          m.wrong_checksum;
      const std::string local_name = m.local_name.empty() ? m.name : m.local_name;
      out += "PK\3\4" + number(20, 2) + number(m.flags, 2) + number(m.method, 2) + number(0, 4) +
             number(checksum, 4) +
             number(or_else(m.local_stored_size, or_else(m.stored_size, stored.size())), 4) +
             number(or_else(m.local_size, or_else(m.size, m.content.size())), 4) +
             number(local_name.size(), 2) + number(m.local_extra.size(), 2) + local_name +
             m.local_extra + stored;
      directory += "PK\1\2" + number(20, 2) + number(20, 2) + number(m.flags, 2) +
                   number(m.method, 2) + number(0, 4) + number(checksum, 4) +
                   number(or_else(m.stored_size, stored.size()), 4) +
                   number(or_else(m.size, m.content.size()), 4) + number(m.name.size(), 2) +
                   number(m.extra.size(), 2) + number(0, 2) + number(m.disk, 2) + number(0, 6) +
                   number(or_else(m.offset, start), 4) + m.name + m.extra;
    }
    out += before;
    directory += extra_in_directory;
    const std::uint64_t at = out.size();
    out += directory;
    out += "PK\5\6" + number(disk, 4) + number(or_else(count, members.size()), 2) +
           number(or_else(count, members.size()), 2) +
           number(or_else(directory_size, directory.size()), 4) +
           number(or_else(directory_at, at), 4) + number(comment.size(), 2) + comment;
    return out;
  }
};

void expect_archive_refused(const Archive& archive, std::string_view part) {
  const std::string bytes = archive.bytes();
  const std::string text = complaint([&] { parse_all(bytes_of(bytes)); });
  EXPECT_NE(text.find(part), std::string::npos) << text << "\nlacks " << part;
  EXPECT_NE(text.find(": at byte "), std::string::npos) << text;
}

const TensorMap& some_tensors() {
  static const TensorMap tensors{
      {"w", Tensor<float>(Shape{2, 3}, {1, -2, 3.5F, 0, 5, 6})},
      {"stage2.0.conv.weight", Tensor<double>(Shape{1, 1}, {1e300})},
      {"steps", Tensor<Index>(Shape{3}, {1, -5, Index{1} << 62})},
      {"scalar", Tensor<double>(Shape{}, 2.5)},
      {"none", Tensor<float>(Shape{0, 4})},
      {"größe/重み", Tensor<float>(Shape{1}, {7})},
      {"zeros", Tensor<float>(Shape{100, 200})},
      {"", Tensor<float>(Shape{1}, {8})},
  };
  return tensors;
}

TEST_F(Npz, WhatWasSavedComesBack) {
  for (const bool deflate : {false, true}) {
    save_npz(path("a.npz"), some_tensors(), {.deflate = deflate});
    EXPECT_EQ(load_npz(path("a.npz")), some_tensors());
    EXPECT_EQ(std::filesystem::file_size(path("a.npz")) < 10000, deflate);
  }
  save_npz(path("none.npz"), {});
  EXPECT_TRUE(load_npz(path("none.npz")).empty());
  EXPECT_EQ(NpzReader(path("a.npz")).array("w").shape, (Shape{2, 3}));
  EXPECT_EQ(NpzReader(path("a.npz")).array("steps").type, NumberType::i64);
}

TEST_F(Npz, EqualContentsMakeEqualFiles) {
  save_npz(path("a"), some_tensors());
  save_npz(path("b"), some_tensors());
  EXPECT_EQ(read(path("a")), read(path("b")));
}

TEST_F(Npz, Zip64IsWrittenAndRead) {
  for (const bool deflate : {false, true}) {
    OutputFile file(path("z.npz"));
    ZipWriter zip(file, {.deflate = deflate, .always_zip64 = true});
    zip.add("x.npy", {kTwo});
    zip.add("y.npy", {std::string_view(kTwo).substr(0, 70), std::string_view(kTwo).substr(70)});
    zip.finish();
    file.commit();
    const auto arrays = arrays_of(NpzReader(path("z.npz")));
    EXPECT_EQ(arrays.at("x"), kOneTwo);
    EXPECT_EQ(arrays.at("y"), kOneTwo);
    const std::string bytes = read(path("z.npz"));
    expect_no_beginning_is_accepted(bytes, parse);
    for_each_accepted_flip(
        bytes, parse_all, [&](const auto& result, std::size_t) { EXPECT_EQ(result, arrays); });
  }
}

/// Runs a program with NumPy; whether there is one.
bool run_numpy(const std::filesystem::path& folder, const std::string& program) {
  std::ofstream(folder / "program.py") << "import sys, numpy as np, zipfile\n" << program;
  const std::string command = "cd '" + folder.string() + "' && " FENESTRA_PYTHON " program.py";
  return std::system(command.c_str()) == 0;
}

TEST_F(Npz, NumpysFilesAreRead) {
  if (!run_numpy(path(""), "")) {
    GTEST_SKIP() << "no NumPy in " FENESTRA_PYTHON;
  }
  for (const std::string function : {"savez", "savez_compressed"}) {
    ASSERT_TRUE(run_numpy(path(""), "np." + function + R"(('a.npz', np.float32([[1, 2], [3, 4]]),
        weight=np.arange(6, dtype='<f8').reshape(2, 3).T, scalar=np.float64(2.5),
        none=np.zeros((0, 3), 'f4'), half=np.float16([1, -2]), big=np.arange(3, dtype='>i4'),
        yes=np.array([True, False]), bytes=np.uint8([0, 255]), **{'größe': np.int64([-1])}))"));
    const TensorMap arrays = load_npz(path("a.npz"));
    EXPECT_EQ(arrays,
              (TensorMap{{"arr_0", Tensor<float>(Shape{2, 2}, {1, 2, 3, 4})},
                         {"weight", Tensor<double>(Shape{3, 2}, {0, 3, 1, 4, 2, 5})},
                         {"scalar", Tensor<double>(Shape{}, 2.5)},
                         {"none", Tensor<float>(Shape{0, 3})},
                         {"half", Tensor<float>(Shape{2}, {1, -2})},
                         {"big", Tensor<Index>(Shape{3}, {0, 1, 2})},
                         {"yes", Tensor<Index>(Shape{2}, {1, 0})},
                         {"bytes", Tensor<Index>(Shape{2}, {0, 255})},
                         {"größe", Tensor<Index>(Shape{1}, {-1})}}));
  }
  ASSERT_TRUE(run_numpy(path(""), "np.savez('o.npz', x=np.array([None, {}], dtype=object))"));
  EXPECT_NE(complaint([&] { load_npz(path("o.npz")); }).find("pickle"), std::string::npos);
  // As written to a pipe: sizes follow the data.
  ASSERT_TRUE(run_numpy(path(""), R"(
class Pipe:
    def __init__(self, f): self.f = f
    def write(self, b): return self.f.write(b)
    def flush(self): self.f.flush()
with open('p.npz', 'wb') as f, zipfile.ZipFile(Pipe(f), 'w', zipfile.ZIP_DEFLATED) as z:
    for name in ('x', 'y'):
        with z.open(name + '.npy', 'w') as m: np.lib.format.write_array(m, np.float32([1, 2]))
)"));
  EXPECT_EQ(arrays_of(NpzReader(path("p.npz"))).at("y"), kOneTwo);
}

TEST_F(Npz, NumpyReadsOurFiles) {
  if (!run_numpy(path(""), "")) {
    GTEST_SKIP() << "no NumPy in " FENESTRA_PYTHON;
  }
  for (const bool deflate : {false, true}) {
    save_npz(path("a.npz"), some_tensors(), {.deflate = deflate});
    EXPECT_TRUE(run_numpy(path(""), R"(
assert zipfile.ZipFile('a.npz').testzip() is None
a = np.load('a.npz', allow_pickle=False)
assert sorted(a) == sorted(['w', 'stage2.0.conv.weight', 'steps', 'scalar', 'none', 'größe/重み',
                            'zeros', '']), sorted(a)
assert a['w'].dtype == 'f4' and a['w'].tolist() == [[1, -2, 3.5], [0, 5, 6]]
assert a['steps'].dtype == 'i8' and a['steps'].tolist() == [1, -5, 1 << 62]
assert a['scalar'].shape == () and a['scalar'] == 2.5 and a['none'].shape == (0, 4)
assert a['größe/重み'].tolist() == [7] and a['zeros'].shape == (100, 200)
)"));
    OutputFile file(path("z.npz"));
    ZipWriter zip(file, {.deflate = deflate, .always_zip64 = true});
    zip.add("x.npy", {kTwo});
    zip.finish();
    file.commit();
    EXPECT_TRUE(run_numpy(path(""), R"(
assert zipfile.ZipFile('z.npz').testzip() is None
assert np.load('z.npz')['x'].tolist() == [1, 2])"));
  }
}

TEST_F(Npz, TheArchivesOfThisTestAreGoodUnlessSaid) {
  const std::string stored = Archive{.members = {{}}}.bytes();
  EXPECT_EQ(parse_all(bytes_of(stored)).at("x"), kOneTwo);
  const std::string shrunk =
      Archive{.members = {{.stored = deflated(kTwo), .method = 8}}, .comment = "PK\5\6 and more"}
          .bytes();
  EXPECT_EQ(parse_all(bytes_of(shrunk)).at("x"), kOneTwo);
  const std::string gap = Archive{.members = {{}, {.name = "y.npy"}}, .before = "gap"}.bytes();
  EXPECT_EQ(parse_all(bytes_of(gap)).size(), 2U);
  // Extra fields of others are skipped; those of zip64 stand in for sizes of all ones.
  const std::string other = number(0x5455, 2) + number(3, 2) + "abc";
  const std::string sizes =
      number(1, 2) + number(16, 2) + number(kTwo.size(), 8) + number(kTwo.size(), 8);
  const std::string extra = Archive{.members = {{.local_extra = other + sizes,
                                                 .extra = other + sizes,
                                                 .size = 0xffffffff,
                                                 .stored_size = 0xffffffff}}}
                                .bytes();
  EXPECT_EQ(parse_all(bytes_of(extra)).at("x"), kOneTwo);
}

TEST_F(Npz, WhatIsNoArchiveIsRefused) {
  const auto refused = [](const std::string& bytes, std::size_t offset, std::string_view part) {
    expect_refused([&] { parse(bytes_of(bytes)); }, offset, part);
  };
  refused("", 0, "at least 22 bytes, found 0");
  refused(std::string(21, 'x'), 21, "at least 22 bytes");
  refused(std::string(100000, 'x'), 100000, "PK\\x05\\x06");
  refused(kTwo, kTwo.size(), "no archive");
  refused(Archive{}.bytes() + "x", 23, "no archive");
  refused("x" + Archive{.members = {{}}}.bytes(), 1 + 35 + kTwo.size() + 51, "another place");
}

TEST_F(Npz, MembersThatAreNotPlainArraysAreRefused) {
  expect_archive_refused({.members = {{.flags = 1}}}, "not encrypted");
  expect_archive_refused({.members = {{.flags = 1 << 6}}}, "not encrypted");
  expect_archive_refused({.members = {{.flags = 1 << 13}}}, "not encrypted");
  expect_archive_refused({.members = {{.method = 12}}}, "found method 12");
  expect_archive_refused({.members = {{.name = "x.txt"}}}, "arrays only");
  expect_archive_refused({.members = {{.name = "folder/", .content = ""}}}, "arrays only");
  expect_archive_refused({.members = {{.name = std::string("\0.npy", 5)}}}, "zero byte");
  expect_archive_refused({.members = {{.name = "\x81.npy"}}}, "ASCII or UTF-8");
  expect_archive_refused({.members = {{.name = "\x81.npy", .flags = 1 << 11}}}, "ASCII or UTF-8");
  expect_archive_refused({.members = {{}, {}}}, "\"x.npy\" for the second time");
  expect_archive_refused({.members = {{.content = "no array"}}}, "magic string");
  expect_archive_refused({.members = {{.content = ""}}}, "an empty file");
  const std::string x = Archive{.members = {{}}}.bytes();
  EXPECT_NE(complaint([&] { parse(bytes_of(x)).read<float>("y"); }).find("no array is called"),
            std::string::npos);
}

TEST_F(Npz, SizesAreHeldAgainstEachOther) {
  const auto two = static_cast<std::int64_t>(kTwo.size());
  expect_archive_refused({.members = {{.size = two + 1}}}, "a stored member of 82 bytes, found 83");
  expect_archive_refused({.members = {{.size = two + 1, .stored_size = two + 1}}}, "the directory");
  expect_archive_refused({.members = {{.local_size = two - 1}}}, "the directory's size, 82");
  expect_archive_refused({.members = {{.local_stored_size = 0}}},
                         "the directory's stored size, 82");
  expect_archive_refused({.members = {{.local_name = "y.npy"}}}, "the name \"x.npy\"");
  expect_archive_refused({.members = {{.disk = 1}}}, "disk 0, found 1");
  expect_archive_refused({.members = {{}}, .disk = 1}, "disk 0, found 1");
  expect_archive_refused({.members = {{}}, .count = 2}, "2 members");
  expect_archive_refused({.members = {{}, {.name = "y.npy"}}, .count = 1}, "after 1 members");
  expect_archive_refused({.members = {{}}, .count = 0}, "after 0 members");
  expect_archive_refused({.members = {{}}, .directory_size = 52}, "another place");
  expect_archive_refused({.members = {{}}, .directory_at = 1}, "another place");
  expect_archive_refused({.members = {{}}, .directory_at = 0xffffffff}, "zip64 locator");
  expect_archive_refused({.members = {{}}, .extra_in_directory = "abc"}, "3 more bytes");
  expect_archive_refused({.members = {{.offset = 3}}}, "the signature of a member");
  expect_archive_refused({.members = {{.offset = 500}}}, "before the directory");
  expect_archive_refused({.members = {{.offset = 0xffffffff}}}, "zip64 sizes");
  expect_archive_refused({.members = {{.size = 0xffffffff}}}, "zip64 sizes");
  expect_archive_refused(
      {.members = {{.extra = number(1, 2) + number(7, 2) + "1234567", .size = 0xffffffff}}},
      "8 bytes of zip64 sizes, found 7");
  expect_archive_refused({.members = {{.extra = number(9, 2) + number(1, 2)}}},
                         "an extra field of at most 0 bytes, found 1");
  // A size of 2^64-1, and one that wraps around with the offset.
  const std::string huge =
      number(1, 2) + number(16, 2) + number(~std::uint64_t{0}, 8) + number(~std::uint64_t{0}, 8);
  expect_archive_refused(
      {.members =
           {{.local_extra = huge, .extra = huge, .size = 0xffffffff, .stored_size = 0xffffffff}}},
      "18446744073709551615 bytes");
  // The array's own header against the member.
  expect_archive_refused({.members = {{.content = kTwo + "x"}}}, "8 bytes of numbers");
  expect_archive_refused({.members = {{.content = npy("", "(9999999,)")}}},
                         "39999996 bytes of numbers");
}

TEST_F(Npz, OverlapsAreRefused) {
  // Two entries of the directory for the same bytes, under the one name that is there.
  Archive same{.members = {{}}};
  same.members.push_back({.name = "y.npy", .offset = 0});
  expect_archive_refused(same, "the name \"y.npy\", found \"x.npy\"");
  // A member inside the content of another, which is a valid one of its own.
  const std::string inner = "PK\3\4" + number(20, 2) + number(8, 2) + number(0, 2) + number(0, 4) +
                            std::string(12, '\0') + number(5, 2) + number(0, 2) + "y.npy" + kTwo;
  Archive nested{.members = {{.content = inner}}};
  nested.members.push_back({.name = "y.npy", .flags = 8, .offset = 35});
  expect_archive_refused(nested, "an overlap");
}

TEST_F(Npz, ZipBombsAreRefusedBeforeTheyAreInflated) {
  const std::string zeros(1 << 20, '\0');
  const std::string bomb = npy(zeros, "(262144,)");
  const std::string good =
      Archive{.members = {{.content = bomb, .stored = deflated(bomb), .method = 8}}}.bytes();
  EXPECT_EQ(parse(bytes_of(good)).read<float>("x").size(), 262144);
  const NpzReader careful(bytes_of(good), "it", {.max_inflated_bytes = 1 << 20});
  EXPECT_NE(complaint([&] { careful.read<float>("x"); }).find("max_inflated_bytes"),
            std::string::npos);
  // More comes out than the directory says, and less.
  Member more{.content = kTwo, .stored = deflated(kTwo + zeros), .method = 8};
  expect_archive_refused({.members = {more}}, "the end of the deflated data, found more");
  Member less{.content = kTwo, .stored = deflated(kTwo.substr(0, 80)), .method = 8};
  expect_archive_refused({.members = {less}}, "2 more bytes, inflated");
  // More than deflation can do.
  const auto size = static_cast<std::int64_t>(1032 * (deflated(kTwo).size() + 1));
  Member wonder{.content = kTwo, .stored = deflated(kTwo), .method = 8, .size = size};
  expect_archive_refused({.members = {wonder}}, "at most 1032 bytes");
  // Bytes behind the deflated data, and data that stop.
  Member tail{.content = kTwo, .stored = deflated(kTwo) + "x", .method = 8};
  expect_archive_refused({.members = {tail}}, "nothing after the deflated data");
  Member cut{.content = kTwo, .stored = deflated(kTwo), .method = 8};
  cut.stored.pop_back();
  expect_archive_refused({.members = {cut}}, "deflated data");
}

TEST_F(Npz, ChecksumsAreChecked) {
  expect_archive_refused({.members = {{.wrong_checksum = 1}}}, "checksum");
  expect_archive_refused(
      {.members = {{.stored = deflated(kTwo), .method = 8, .wrong_checksum = 1}}}, "checksum");
}

TEST_F(Npz, DamageIsRefusedOrChangesNothing) {
  for (const bool deflate : {false, true}) {
    save_npz(path("a.npz"),
             {{"ab", Tensor<float>(Shape{2, 2}, {1, 2, 3, 4})}, {"c", Tensor<Index>(Shape{}, 5)}},
             {.deflate = deflate});
    const std::string bytes = read(path("a.npz"));
    const auto arrays = parse_all(bytes_of(bytes));
    expect_no_beginning_is_accepted(bytes, parse_all);
    for_each_accepted_flip(
        bytes, parse_all, [&](const auto& result, std::size_t) { EXPECT_EQ(result, arrays); });
  }
}

TEST_F(Npz, WhatCannotBeReadBackIsNotWritten) {
  write("old", "old");
  const Tensor<float> x(Shape{1});
  EXPECT_NE(complaint([&] { save_npz(path("old"), {{"\xff", x}}); }), "");
  EXPECT_NE(complaint([&] { save_npz(path("old"), {{std::string(1, '\0'), x}}); }), "");
  EXPECT_NE(complaint([&] { save_npz(path("old"), {{std::string(65532, 'x'), x}}); }), "");
  EXPECT_EQ(read(path("old")), "old");
  save_npz(path("old"), {{std::string(65531, 'x'), x}});
  EXPECT_EQ(load_npz(path("old")).size(), 1U);
}

}  // namespace
}  // namespace fenestra::io
