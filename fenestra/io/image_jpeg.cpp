// JPEG by the TurboJPEG interface of libjpeg-turbo, which returns its errors; libjpeg's own would
// jump over our destructors.
//
// A warning of the library is an error here: it means that pixels were made up.
#include <fenestra/io/image_formats.hpp>

#include <turbojpeg.h>

#include <limits>
#include <memory>
#include <new>

namespace fenestra::io {

Image decode_jpeg(const ImageFile& file) {
  const std::unique_ptr<void, int (*)(tjhandle)> decoder(tjInitDecompress(), &tjDestroy);
  if (!decoder) {
    throw std::bad_alloc();
  }
  const auto fail = [&] {
    file.fail(
        0, "a JPEG that libjpeg-turbo reads without a warning", tjGetErrorStr2(decoder.get()));
  };
  const auto* const data = reinterpret_cast<const unsigned char*>(file.bytes.data());
  const auto size = static_cast<unsigned long>(file.size());
  int width = 0;
  int height = 0;
  int subsampling = 0;
  int colours = 0;
  if (tjDecompressHeader3(decoder.get(), data, size, &width, &height, &subsampling, &colours) !=
      0) {
    fail();
  }
  if (width < 1 || height < 1) {
    file.fail(0, "a JPEG with a picture in it", "none: tables at most");
  }
  if (colours == TJCS_CMYK || colours == TJCS_YCCK) {
    file.fail(0, "grey or red, green and blue", "colours for printing (CMYK)");
  }
  const bool is_grey = colours == TJCS_GRAY;
  Image image = file.make(0, height, width, is_grey ? 1 : 3);
  // The slow transform gives the same bits with and without vector instructions. Limited scans: a
  // progressive file of a few kilobytes can otherwise take minutes.
  constexpr int kFlags = TJFLAG_ACCURATEDCT | TJFLAG_STOPONWARNING | TJFLAG_LIMITSCANS;
  if (tjDecompress2(decoder.get(),
                    data,
                    size,
                    image.bytes.data(),
                    width,
                    0,
                    height,
                    is_grey ? TJPF_GRAY : TJPF_RGB,
                    kFlags) != 0) {
    fail();
  }
  return image;
}

}  // namespace fenestra::io
