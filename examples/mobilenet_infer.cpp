// Another program than the one that trained it: reads a model file and compiles it for one picture.
#include <fenestra/nn.hpp>

#include <iostream>

int main(int argc, char** argv) {
  namespace nn = fenestra::nn;
  const auto loaded = nn::load_model<float>(argc > 1 ? argv[1] : "mobilenet.safetensors");
  const auto picture = nn::open_dataset("digits", {.split = nn::Split::test})->get(0).image;
  const auto program = fenestra::compile<float>(
      [&](const fenestra::Value<float>& x) {
        auto pass = nn::Pass<float>::inference();
        return loaded.model(x, pass);
      },
      fenestra::Shape{1, 1, 8, 8});
  fenestra::Context context(program);
  std::cout << program.run(context, picture.reshaped({1, 1, 8, 8}))[0] << "\n";
}
