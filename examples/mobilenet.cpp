// A small MobileNet (inverted residuals), trained on the bundled digits and saved as one file:
// mobilenet [FILE]. mobilenet_infer reads it.
#include <fenestra/nn.hpp>

#include <cstdio>

namespace nn = fenestra::nn;

nn::Layer<float> block(int in, int out, int stride) {
  constexpr auto kAct = nn::Nonlinearity::relu6;
  nn::Sequential body{
      nn::conv_norm_act<float, kAct>(in, 4 * in, {.kernel = 1}),
      nn::conv_norm_act<float, kAct>(4 * in, 4 * in, {.stride = stride, .groups = 4 * in}),
      nn::conv_norm<float>(4 * in, out, {.kernel = 1})};
  return stride == 1 && in == out ? nn::Layer<float>(nn::Residual(body)) : nn::Layer<float>(body);
}

int main(int argc, char** argv) {
  nn::Sequential net{nn::conv_norm_act<float>(1, 16),
                     block(16, 16, 1),
                     block(16, 24, 2),
                     block(24, 24, 1),
                     nn::GlobalAvgPool(),
                     nn::Flatten(),
                     nn::Linear(24, 10)};
  nn::initialise(net, fenestra::Key(1));
  nn::Loader<float> training(nn::open_dataset("digits"), {.batch = 32, .seed = 1});
  nn::Loader<float> test(nn::open_dataset("digits", {.split = nn::Split::test}), {.batch = 179});
  nn::Trainer trainer(net, {.optimiser = "adamw rate=0.005", .schedule = "one-cycle"});
  const nn::FitResult result = trainer.fit(training, 6, {.validation = &test});
  nn::save_model(argc > 1 ? argv[1] : "mobilenet.safetensors", trainer.trained());
  std::printf("%.1f %% of the held-out digits are right\n", 100 * result.validation->score());
}
