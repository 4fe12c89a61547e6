// .npy in and out: what was saved comes back, and damaged files say where.
#include <fenestra/io/npy.hpp>

#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

namespace fenestra::io {
namespace {

class Npy : public testing::Test {
 protected:
  Npy()
      : folder_(std::filesystem::temp_directory_path() /
                ("fenestra_npy_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~Npy() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path write(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
    return folder_ / name;
  }
  static std::string header(const std::string& text) {
    return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(text.size()) + '\0' + text;
  }
  static std::string complaint(const std::filesystem::path& path) {
    try {
      load_npy<float>(path);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::bad_file);
      return error.what();
    }
    return "";
  }
  std::filesystem::path folder_;
};

TEST_F(Npy, WhatWasSavedComesBack) {
  const Tensor<float> x(Shape{2, 3}, {1, -2, 3.5F, 0, 5, 6});
  save_npy(folder_ / "x.npy", x);
  EXPECT_EQ(load_npy<float>(folder_ / "x.npy"), x);
  EXPECT_EQ(load_npy<double>(folder_ / "x.npy"),
            x.map([](float v) { return static_cast<double>(v); }));
  const Tensor<double> scalar(Shape{}, 2.5);
  save_npy(folder_ / "s.npy", scalar);
  EXPECT_EQ(load_npy<double>(folder_ / "s.npy"), scalar);
  const Tensor<Index> empty(Shape{0, 4});
  save_npy(folder_ / "e.npy", empty);
  EXPECT_EQ(load_npy<Index>(folder_ / "e.npy"), empty);
}

TEST_F(Npy, FortranOrderIsTransposed) {
  const auto path = write("f.npy",
                          header("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }\n") +
                              "\x01\x02\x03\x04\x05\x06");
  EXPECT_EQ(load_npy<float>(path), Tensor<float>(Shape{2, 3}, {1, 3, 5, 2, 4, 6}));
}

TEST_F(Npy, BytesInTheOtherOrderAndNumbersOfTwoBytesAreRead) {
  const auto path = [&](const std::string& type, const std::string& bytes) {
    return write(
        "o",
        header("{'descr': '" + type + "', 'fortran_order': False, 'shape': (2,), }\n") + bytes);
  };
  EXPECT_EQ(load_npy<float>(path(">f4", std::string("\x3f\x80\0\0\xc0\0\0\0", 8))),
            Tensor<float>(Shape{2}, {1, -2}));
  EXPECT_EQ(load_npy<Index>(path(">u2", std::string("\1\0\0\1", 4))),
            Tensor<Index>(Shape{2}, {256, 1}));
  EXPECT_EQ(load_npy<double>(path("<f2", std::string("\0\x3c\0\xc0", 4))),
            Tensor<double>(Shape{2}, {1, -2}));
  EXPECT_EQ(load_npy<float>(path(">f2", std::string("\x3c\0\xc0\0", 4))),
            Tensor<float>(Shape{2}, {1, -2}));
}

TEST_F(Npy, DamagedFilesSayWhereAndWhat) {
  const std::string numbers(8, '\0');
  const auto with = [&](const std::string& text) {
    return complaint(write("d", header(text) + numbers));
  };
  const auto file = [&](const std::string& bytes) { return complaint(write("d", bytes)); };
  const std::string good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
  EXPECT_EQ(with(good), "");
  struct Case {
    std::string complaint;
    std::vector<std::string> parts;
  };
  const std::string magic = "\x93NUMPY";
  const Case cases[] = {
      {complaint(folder_ / "none.npy"), {"cannot be read"}},
      {file(""), {"at byte 0", "an empty file"}},
      {file("PK\x03\x04 and more"), {"at byte 0", "NUMPY", ".npz"}},
      {file("\x93NUM"), {"at byte 0"}},
      {file(magic), {"at byte 6", "the version", "the end of the file"}},
      {file(magic + '\x01'), {"at byte 7", "the version"}},
      {file(magic + '\x04' + '\0' + "  "), {"at byte 6", "1.0, 2.0 or 3.0", "found 4.0"}},
      {file(magic + '\x01' + '\x01' + "  "), {"at byte 6", "found 1.1"}},
      {file(magic + '\x01' + '\0' + '\x10'), {"at byte 9", "the length of the header"}},
      {file(magic + '\x02' + '\0' + "\x10\x10\x10"), {"at byte 11", "the length of the header"}},
      // A length that lies.
      {file(magic + '\x01' + '\0' + "\xff\xff" + good), {"at byte 8", "at most 57 bytes", "65535"}},
      {file(magic + '\x02' + '\0' + "\xff\xff\xff\xff" + good), {"at byte 8", "4294967295"}},
      {file(magic + '\x02' + '\0' + std::string("\0\0\x02\0", 4) + std::string(200000, ' ')),
       {"at byte 8", "at most 65535 bytes", "131072"}},
      // The dictionary.
      {with(""), {"at byte 10", "'{'", "the end of the header"}},
      {with("descr"), {"at byte 10", "'{'", "\"descr\""}},
      {with("{'descr': '<f4', 'shape': (2,), }"), {"'fortran_order'", "without it"}},
      {with("{}"), {"'descr'", "without it"}},
      {with("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,)}"),
       {"at byte 27", "once each"}},
      {with("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'more': 1}"),
       {"at byte 66", "once each", "'more'"}},
      {with("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)"), {"',' or '}'"}},
      {with("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} x"), {"spaces", "\"x\""}},
      {with("{'descr: <f4, 'fortran_order': False}"), {"once each"}},
      {with("{'descr': '<f4"), {"closing quote"}},
      {with("{descr: '<f4'}"), {"at byte 11", "a key in quotes"}},
      {with("{'descr' '<f4'}"), {"':' after a key"}},
      {with("{'descr': '<f4', 'fortran_order': 1, 'shape': (2,)}"), {"True or False", "\"1,"}},
      {with("{'descr': '<f4', 'fortran_order': Fals"), {"True or False"}},
      // Types.
      {with("{'descr': '|O', 'fortran_order': False, 'shape': (2,), }"),
       {"at byte 20", "an array of Python objects", "pickle", "'|O'", "fix: ", "dtype='float32'"}},
      {with("{'descr': '=f4', 'fortran_order': False, 'shape': (2,), }"), {"at byte 20", "'=f4'"}},
      {with("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }"),
       {"structured", "array['field']"}},
      {with("{'descr': '<U2', 'fortran_order': False, 'shape': (1,), }"), {"'<U2'", "astype"}},
      {with("{'descr': '|S4', 'fortran_order': False, 'shape': (2,), }"), {"'|S4'"}},
      {with("{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }"), {"'<c8'"}},
      {with("{'descr': '<f1', 'fortran_order': False, 'shape': (8,), }"), {"'<f1'"}},
      {with("{'descr': '<f16', 'fortran_order': False, 'shape': (1,), }"), {"'<f16'"}},
      {with("{'descr': '<M8[ns]', 'fortran_order': False, 'shape': (1,), }"), {"'<M8[ns]'"}},
      {with("{'descr': '|f4', 'fortran_order': False, 'shape': (2,), }"), {"'|f4'"}},
      {with("{'descr': '=f4', 'fortran_order': False, 'shape': (2,), }"), {"'=f4'"}},
      {with("{'descr': '<b8', 'fortran_order': False, 'shape': (1,), }"), {"'<b8'"}},
      {with("{'descr': '<i3', 'fortran_order': False, 'shape': (2,), }"), {"'<i3'"}},
      {with("{'descr': '', 'fortran_order': False, 'shape': (2,), }"), {"'<f4'"}},
      {with("{'descr': 4, 'fortran_order': False, 'shape': (2,), }"), {"number type in quotes"}},
      {with("{'descr': '\x1b[2J', 'fortran_order': False, 'shape': (2,), }"), {"\\x1b[2J"}},
      // Shapes.
      {with("{'descr': '<f4', 'fortran_order': False, 'shape': 2}"), {"parentheses", "\"2}"}},
      {with("{'descr': '<f4', 'fortran_order': False, 'shape': (2)}"), {"',' after the only"}},
      {with("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}"),
       {"at byte 61", "0 or more"}},
      {with("{'descr': '<f4', 'fortran_order': False, 'shape': (2.0,)}"), {"','", "\".0"}},
      {with("{'descr': '<f4', 'fortran_order': False, 'shape': (,)}"), {"an extent", "\",)"}},
      {with("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2"), {"',' or ')'"}},
      {with("{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775808,)}"),
       {"at most 9223372036854775807"}},
      {with("{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 2)}"),
       {"fits into memory"}},
      {with("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}"),
       {"fits into memory"}},
      {with("{'descr': '<f4', 'fortran_order': False, 'shape': (0, 9223372036854775807, 4)}"),
       {"fits into memory"}},
      {with("{'descr': '<f4', 'fortran_order': False, 'shape': "
            "(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2)}"),
       {"at most 16 extents"}},
      // More or fewer numbers than it says. What a file claims is not allocated.
      {with("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }"),
       {"at byte 67", "12 bytes of numbers for (3,)", "found 8 bytes", "cut"}},
      {with("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }"),
       {"4 bytes", "found 8 bytes", "one array"}},
      {with("{'descr': '<f4', 'fortran_order': False, 'shape': (0,), }"), {"0 bytes", "8 bytes"}},
      {with("{'descr': '<f8', 'fortran_order': True, 'shape': (1000000, 1000000, 1000), }"),
       {"8000000000000000 bytes", "found 8 bytes"}},
  };
  for (const Case& c : cases) {
    EXPECT_NE(c.complaint.find("\n  fix: "), std::string::npos) << c.complaint;
    for (const std::string& part : c.parts) {
      EXPECT_NE(c.complaint.find(part), std::string::npos) << part << "\nin: " << c.complaint;
    }
  }
}

TEST_F(Npy, EveryCutOfAFileIsRefused) {
  save_npy(folder_ / "whole", Tensor<float>(Shape{2, 3}, {1, 2, 3, 4, 5, 6}));
  std::ifstream file(folder_ / "whole", std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(file), {}};
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_FALSE(complaint(write("cut", whole.substr(0, length))).empty()) << length;
  }
  EXPECT_FALSE(complaint(write("long", whole + "x")).empty());
}

TEST_F(Npy, EveryVersionAndNotationOfAHeaderIsRead) {
  const std::string numbers("\0\0\x80\x3f\0\0\0\x40", 8);
  const Tensor<float> expected(Shape{2}, {1, 2});
  const auto later = [](char version, const std::string& text) {
    return std::string("\x93NUMPY") + version + '\0' + static_cast<char>(text.size()) +
           std::string(3, '\0') + text;
  };
  const std::string text = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }     \n";
  for (const std::string& start :
       {header(text),
        later('\x02', text),
        later('\x03', text),
        header("{\"shape\":(2,),\"fortran_order\":False,\"descr\":\"<f4\"}"),
        header("{'shape': (2L,), 'descr': '<f4', 'fortran_order': True}"),
        header("{ 'descr' : '<f4' , 'fortran_order' : False , 'shape' : ( 2 , ) , } \n")}) {
    EXPECT_EQ(load_npy<float>(write("v", start + numbers)), expected) << start;
  }
  const auto scalar = header("{'descr': '<f4', 'fortran_order': True, 'shape': ()}");
  EXPECT_EQ(load_npy<double>(write("s", scalar + numbers.substr(4))), Tensor<double>(Shape{}, 2.0));
  const auto empty = header("{'descr': '<i2', 'fortran_order': True, 'shape': (3, 0)}");
  EXPECT_EQ(load_npy<float>(write("e", empty)), Tensor<float>(Shape{3, 0}));
}

TEST_F(Npy, OnlyRegularFilesAreRead) {
  for (const char* endless : {"/dev/zero", "/dev/null", "/dev/urandom"}) {
    EXPECT_NE(complaint(endless).find("a device"), std::string::npos) << endless;
  }
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0644), 0);
  EXPECT_NE(complaint(folder_ / "pipe").find("a named pipe"), std::string::npos);
  EXPECT_NE(complaint(folder_).find("a folder"), std::string::npos);
  std::filesystem::create_symlink("/dev/zero", folder_ / "link.npy");
  EXPECT_NE(complaint(folder_ / "link.npy").find("a device"), std::string::npos);
}

template <class From>
std::string bytes_of(std::initializer_list<From> list) {
  return {reinterpret_cast<const char*>(list.begin()), list.size() * sizeof(From)};
}

TEST_F(Npy, NumbersThatDoNotFitAreRefused) {
  const auto load = [&]<class T>(T, const std::string& type, const std::string& bytes) {
    const std::size_t width = static_cast<std::size_t>(type[2] - '0');
    const auto path = write("n",
                            header("{'descr': '" + type + "', 'fortran_order': False, 'shape': (" +
                                   std::to_string(bytes.size() / width) + ",)}") +
                                bytes);
    try {
      return to_string(load_npy<T>(path).shape());
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::bad_file);
      return std::string(error.what());
    }
  };
  using I64 = std::int64_t;
  using U64 = std::uint64_t;
  constexpr I64 kMost = std::numeric_limits<I64>::max();
  constexpr I64 kLeast = std::numeric_limits<I64>::min();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  // What fits, to the last number.
  EXPECT_EQ(load(0.0F, "<i8", bytes_of<I64>({1 << 24, -(1 << 24), kLeast})), "(3,)");
  EXPECT_EQ(load(0.0, "<i8", bytes_of<I64>({I64{1} << 53, kLeast})), "(2,)");
  EXPECT_EQ(load(0.0, "<u8", bytes_of<U64>({U64{1} << 63})), "(1,)");
  EXPECT_EQ(load(0.0F, "<f8", bytes_of<double>({3.4028234663852886e38, 1e-300, 0.1})), "(3,)");
  EXPECT_EQ(load(0.0F, "<f8", bytes_of<double>({kInfinity, -kInfinity, kNan})), "(3,)");
  EXPECT_EQ(load(Index{}, "<f8", bytes_of<double>({-0x1p63, 0x1p62, -0.0})), "(3,)");
  EXPECT_EQ(load(Index{}, "<u8", bytes_of<U64>({U64{kMost}})), "(1,)");
  EXPECT_EQ(load(0.0F, "|b1", std::string("\0\1", 2)), "(2,)");
  // What does not, with its place.
  const auto refused = [](const std::string& text, const std::string& place) {
    EXPECT_NE(text.find("at byte " + place + ": expected a "), std::string::npos) << text;
  };
  refused(load(0.0F, "<i8", bytes_of<I64>({1, (1 << 24) + 1})), "73");
  refused(load(0.0, "<i8", bytes_of<I64>({(I64{1} << 53) + 1})), "65");
  refused(load(0.0, "<i8", bytes_of<I64>({kMost})), "65");
  refused(load(0.0F, "<i8", bytes_of<I64>({kMost})), "65");
  refused(load(0.0, "<u8", bytes_of<U64>({std::numeric_limits<U64>::max()})), "65");
  refused(load(Index{}, "<u8", bytes_of<U64>({U64{1} << 63})), "65");
  refused(load(0.0F, "<f8", bytes_of<double>({1e39})), "65");
  refused(load(0.0F, "<f8", bytes_of<double>({-1.7e308})), "65");
  refused(load(Index{}, "<f8", bytes_of<double>({2.5})), "65");
  refused(load(Index{}, "<f8", bytes_of<double>({kNan})), "65");
  refused(load(Index{}, "<f8", bytes_of<double>({0x1p63})), "65");
  refused(load(Index{}, "<f4", bytes_of<float>({kInfinity})), "65");
  refused(load(0.0F, "|b1", std::string("\1\2", 2)), "66");
}

TEST_F(Npy, ConversionGoesOnBeyondOnePiece) {
  Tensor<Index> numbers(Shape{20001});
  for (Index i = 0; i < numbers.size(); ++i) {
    numbers.mutable_data()[i] = i;
  }
  save_npy(folder_ / "long.npy", numbers);
  EXPECT_EQ(load_npy<double>(folder_ / "long.npy"),
            numbers.map([](Index i) { return static_cast<double>(i); }));
}

TEST_F(Npy, WritingWhereNothingCanBeWrittenIsAnError) {
  try {
    save_npy(folder_ / "missing" / "x.npy", Tensor<float>(Shape{1}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_file);
  }
}

}  // namespace
}  // namespace fenestra::io
