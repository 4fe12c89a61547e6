// Coefficients and limits of vector_math-inl.hpp. Internal: not installed.
//
// With z the square of the argument, the polynomials are
//   kExp    (exp(r) - 1 - r)/r^2                        |r| <= ln(2)/2
//   kLog    (2 artanh(s)/s - 2)/z                       |s| <= (sqrt(2) - 1)/(sqrt(2) + 1)
//   kLog1p  the same                                    0 <= s <= 1/3
//   kErf    erf(x)/x - 1                                |x| <= 1
//   kTail   (u + c)/2 exp(u^2/2) P(X > u), X a standard normal variable, in q = (u - c)/(u + c),
//           c = kTailCentre, until P(X > u) is 0
//   kSin    (sin(r) - r)/r^3, kCos (cos(r) - 1 + z/2)/z^2   |r| <= pi/4
// each fitted at Chebyshev points until the fit's error was below a tenth of the rounding of the
// sum it goes into.
#pragma once

namespace fenestra::kernels {

template <class T>
struct MathConstants;

template <>
struct MathConstants<float> {
  static constexpr int kMantissaBits = 23;
  static constexpr float kBias = 127;
  static constexpr float kShift = 0x1.8p23f;
  static constexpr float kWhole = 0x1p23f;
  static constexpr float kSplitter = 0x1p12f + 1;
  static constexpr float kLog2OfE = 1.44269504f;
  static constexpr float kLn2High = 0x1.62e4p-1f;  // 15 bits
  static constexpr float kLn2Low = 0x1.7f7d1cp-20f;
  static constexpr float kSqrtHalf = 0x1.6a09e6p-1f;
  static constexpr float kLift = 0x1p24f;  // makes denormal numbers normal
  static constexpr float kLiftExponent = 24;
  static constexpr float kExpLow = -104;      // exp rounds to 0
  static constexpr float kExpHigh = 89;       // exp is infinite
  static constexpr float kExpm1Low = -20;     // exp - 1 rounds to -1
  static constexpr float kNormalEnd = 14.5f;  // a normal variable is below -14.5 never
  static constexpr float kErfEnd = 4;         // erf is 1
  static constexpr float kTailCentre = 3;
  static constexpr float kExp[] = {
      0.5f, 0.166665703f, 0.041666545f, 0.00836438034f, 0.00139276846f};
  static constexpr float kLog[] = {0.666666687f, 0.400001258f, 0.285503983f, 0.233419433f};
  static constexpr float kLog1p[] = {
      0.666666687f, 0.400000095f, 0.285703063f, 0.222647116f, 0.174647018f, 0.207876176f};
  static constexpr float kErf[] = {0.128379166f,
                                   -0.37612626f,
                                   0.112835944f,
                                   -0.0268542115f,
                                   0.00518908724f,
                                   -0.00080168643f,
                                   7.87587487e-05f};
  static constexpr float kTail[] = {0.364541858f,
                                    -0.254666001f,
                                    0.115008838f,
                                    -0.0236313734f,
                                    -0.0052311467f,
                                    0.00348490663f,
                                    0.000512067869f,
                                    -0.000517111039f,
                                    -0.000122291327f,
                                    6.65629559e-05f,
                                    2.76779829e-05f};
  static constexpr float kSin[] = {-0.166666642f, 0.00833274797f, -0.000195878412f};
  static constexpr float kCos[] = {0.0416666642f, -0.00138883025f, 2.45478914e-05f};
};

template <>
struct MathConstants<double> {
  static constexpr int kMantissaBits = 52;
  static constexpr double kBias = 1023;
  static constexpr double kShift = 0x1.8p52;
  static constexpr double kWhole = 0x1p52;
  static constexpr double kSplitter = 0x1p27 + 1;
  static constexpr double kLog2OfE = 1.4426950408889634;
  static constexpr double kLn2High = 0x1.62e42feep-1;  // 32 bits
  static constexpr double kLn2Low = 0x1.a39ef35793c76p-33;
  static constexpr double kSqrtHalf = 0x1.6a09e667f3bcdp-1;
  static constexpr double kLift = 0x1p54;
  static constexpr double kLiftExponent = 54;
  static constexpr double kExpLow = -746;
  static constexpr double kExpHigh = 710;
  static constexpr double kExpm1Low = -40;
  static constexpr double kNormalEnd = 38.7;
  static constexpr double kErfEnd = 6;
  static constexpr double kTailCentre = 5.25;
  static constexpr double kExp[] = {0.50000000000000011,
                                    0.16666666666666669,
                                    0.041666666666616864,
                                    0.0083333333333295029,
                                    0.0013888888920770123,
                                    0.00019841269865788537,
                                    2.4801515879478315e-05,
                                    2.7557264294679126e-06,
                                    2.7622614078619688e-07,
                                    2.5102327723609146e-08};
  static constexpr double kLog[] = {0.66666666666666696,
                                    0.39999999999893221,
                                    0.28571428628810996,
                                    0.22222210674238516,
                                    0.18182922513515942,
                                    0.15330617306743305,
                                    0.14630031364122861};
  static constexpr double kLog1p[] = {0.66666666666666663,
                                      0.40000000000014585,
                                      0.28571428567108759,
                                      0.22222222717427864,
                                      0.18181789436132859,
                                      0.15385570064958623,
                                      0.13314144209654935,
                                      0.12001072809590713,
                                      0.088007384861446741,
                                      0.16164045611943531};
  static constexpr double kErf[] = {0.12837916709551256,
                                    -0.37612638903183543,
                                    0.11283791670945006,
                                    -0.02686617064323777,
                                    0.0052239776071164225,
                                    -0.00085483259753896918,
                                    0.00012055294904839707,
                                    -1.4924736907419661e-05,
                                    1.6447424703317362e-06,
                                    -1.6208483801871705e-07,
                                    1.3720064546777686e-08,
                                    -7.7958988270021425e-10};
  static constexpr double kTail[] = {
      0.38581321197663759,     -0.33792668494019207,    0.25820581958500732,
      -0.17057510964397027,    0.095847965624894976,    -0.044473319217848674,
      0.016047053062671415,    -0.003831094111739835,   0.00016746127479849273,
      0.0002970341863317912,   -0.00010804770414893711, -3.4943916466135309e-06,
      1.3358711100210299e-05,  -2.1677996074719174e-06, -1.3851480324129004e-06,
      4.7569350185500918e-07,  1.4941198926852554e-07,  -8.0653645424759532e-08,
      -1.9467675473533159e-08, 1.2309404336933998e-08,  3.2432637481706621e-09,
      -1.3331960211146806e-09, -4.7311458685695201e-10};
  static constexpr double kSin[] = {-0.16666666666666666,
                                    0.0083333333333309462,
                                    -0.00019841269836754971,
                                    2.7557316100683029e-06,
                                    -2.5051131455427946e-08,
                                    1.591810123027412e-10};
  static constexpr double kCos[] = {0.041666666666666664,
                                    -0.0013888888888887395,
                                    2.4801587298763433e-05,
                                    -2.7557317270560326e-07,
                                    2.0876146024689747e-09,
                                    -1.1382614868556325e-11};
};

// pi/2 in three parts of 33 bits and a last one.
inline constexpr double kHalfPi[] = {
    0x1.921fb544p+0, 0x1.0b4611a6p-34, 0x1.3198a2ep-69, 0x1.b839a252049c1p-104};
inline constexpr double kTwoOverPi = 0.63661977236758134;
/// Arguments up to here have k < 2^20 quarter turns.
inline constexpr double kSineEnd = 0x1p20;

// (2 artanh(s)/s - 2 - 2/3 z)/z^2, and 2/3 in two parts, for powers.
inline constexpr double kPowerLog[] = {0.4000000000000003,
                                       0.28571428571332935,
                                       0.22222222273617623,
                                       0.18181807839015793,
                                       0.15385604411768514,
                                       0.13284977969619904,
                                       0.12925663575110274};
inline constexpr double kTwoThirds[] = {0.66666666666666663, 3.7007434154171883e-17};

}  // namespace fenestra::kernels
