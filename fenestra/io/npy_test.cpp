// .npy in and out: what was saved comes back, and damaged files say where.
#include <fenestra/io/npy.hpp>

#include <gtest/gtest.h>

#include <fstream>
#include <unistd.h>

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

TEST_F(Npy, DamagedFilesSayWhereAndWhat) {
  EXPECT_NE(complaint(folder_ / "none.npy").find("cannot be read"), std::string::npos);
  EXPECT_NE(complaint(write("a", "")).find("at byte 0"), std::string::npos);
  EXPECT_NE(complaint(write("b", "PK and more text")).find("at byte 0"), std::string::npos);
  EXPECT_NE(
      complaint(write("c", header("{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }")))
          .find("'<f4'"),
      std::string::npos);
  const auto cut =
      write("d", header("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }") + "1234");
  EXPECT_NE(complaint(cut).find("8 bytes"), std::string::npos);
  const auto huge = write(
      "e", header("{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 2), }"));
  EXPECT_NE(complaint(huge).find("fits"), std::string::npos);
  const auto negative =
      write("g", header("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }"));
  EXPECT_FALSE(complaint(negative).empty());
}

TEST_F(Npy, IntegersThatDoNotFitAreRefused) {
  const Tensor<Index> big(Shape{1}, {(Index{1} << 24) + 1});
  save_npy(folder_ / "big.npy", big);
  EXPECT_NE(complaint(folder_ / "big.npy").find("exactly"), std::string::npos);
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
