// Shows what fenestra/cli/terminal.hpp and its neighbours draw, for terminal_test.py to look at:
// `facts`, `progress`, `table` or `pictures`.
#include <fenestra/cli/table.hpp>
#include <fenestra/cli/terminal.hpp>
#include <fenestra/cli/terminal_picture.hpp>

#include <chrono>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

namespace fenestra::cli {

namespace {

void facts() {
  for (const Stream stream : {Stream::out, Stream::err}) {
    const Terminal terminal = terminal_of(stream);
    (stream == Stream::out ? std::cout : std::cerr)
        << "live=" << terminal.is_live << " width=" << terminal.width
        << " known=" << terminal.has_width << " colour=" << terminal.has_colour
        << " unicode=" << terminal.has_unicode << "\n";
  }
}

void progress() {
  constexpr int kSteps = 500;
  int asked = 0;
  {
    ProgressLine line;
    const auto state = [&](int step) {
      return ProgressState{.label = "epoch 3/10",
                           .part = static_cast<double>(step) / kSteps,
                           .details = "loss 0.1234  98.1 %  1,234 images/s  0:12 left"};
    };
    for (int step = 0; step < kSteps; ++step) {
      line.show([&] {
        ++asked;
        return state(step);
      });
      if (step == kSteps / 2) {
        line.clear();
        std::cout << "halfway\n" << std::flush;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    line.finish(state(kSteps));
    line.show([&] { return ProgressState{.label = "wiped", .part = -1, .details = ""}; });
  }
  std::cout << "asked " << asked << "\n";
}

void table() {
  const std::vector<std::vector<std::string>> rows = {
      {"layer", "output", "parameters"},
      {"backbone.stage2.block0.conv.depthwise", "(64, 128, 56, 56)", "1,152"},
      {"head", "(64, 1000)", "1,281,000"}};
  std::cout << table_text(rows,
                          {.align = {Align::left, Align::left, Align::right}, .has_header = true},
                          terminal_of(Stream::out));
}

void pictures() {
  std::vector<CaptionedPicture> all;
  for (Index n = 0; n < 6; ++n) {
    Tensor<float> sample({1, 16, 16});
    for (Index y = 0; y < 16; ++y) {
      for (Index x = 0; x < 16; ++x) {
        const Index distance = (x - 8) * (x - 8) + (y - 8) * (y - 8);
        sample.mutable_at(0, y, x) = distance > 9 + 4 * n && distance < 30 + 6 * n ? 1.0F : 0.05F;
      }
    }
    all.push_back({sample, std::to_string(n) + " as " + std::to_string(n % 4), n > 3});
  }
  const Terminal terminal = terminal_of(Stream::out);
  std::cout << picture_rows(all, terminal);
  std::vector<double> losses;
  for (int step = 0; step < 300; ++step) {
    losses.push_back(2.0 / (1 + step));
  }
  std::cout << "loss " << sparkline(losses, terminal.width - 5, terminal.has_unicode) << "\n";
}

}  // namespace

}  // namespace fenestra::cli

int main(int argc, char** argv) {
  using namespace fenestra::cli;
  const std::string what = argc == 2 ? argv[1] : "";
  if (what == "facts") {
    facts();
  } else if (what == "progress") {
    progress();
  } else if (what == "table") {
    table();
  } else if (what == "pictures") {
    pictures();
  } else {
    std::cerr << "usage: show_terminal facts|progress|table|pictures\n";
    return 2;
  }
}
