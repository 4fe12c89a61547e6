// allreduce_bench: the sum along our tree beside MPI_Allreduce, in one run and in turn, under
// mpirun:
//
//   mpirun -n 2 allreduce_bench [MB...]
#include <fenestra/base/parallel.hpp>
#include <fenestra/ranks/leaf_sum.hpp>
#include <fenestra/ranks/mpi.hpp>

#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <string>
#include <vector>

namespace {

namespace fn = fenestra;
using fn::Index;

constexpr int kRepeats = 15;

void measure(fn::ranks::Communicator& communicator, double megabytes) {
  const auto elements = static_cast<Index>(megabytes * 1e6 / sizeof(float));
  fn::ranks::LeafSum<float> sum;
  std::vector<float> theirs(static_cast<std::size_t>(elements), 1.0f);
  std::vector<float> result(theirs.size());
  // Buckets as the trainer has them.
  std::vector<Index> ends;
  for (Index end = 1 << 20; end < elements; end += 1 << 20) {
    ends.push_back(end);
  }
  ends.push_back(elements);
  double ours = std::numeric_limits<double>::infinity();
  double mpi = ours;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    sum.start({.leaves = communicator.size(),
               .elements = elements,
               .ends = ends,
               .communicator = &communicator,
               .channel = 1});
    std::fill_n(sum.begin_leaf(communicator.rank()), elements, 1.0f);
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    sum.ready({0, elements});
    sum.end_leaf();
    const float total = sum.finish()[0];
    MPI_Barrier(MPI_COMM_WORLD);
    ours = std::min(ours, MPI_Wtime() - begin);
    begin = MPI_Wtime();
    MPI_Allreduce(theirs.data(),
                  result.data(),
                  static_cast<int>(elements),
                  MPI_FLOAT,
                  MPI_SUM,
                  MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    mpi = std::min(mpi, MPI_Wtime() - begin);
    if (total != result[0]) {
      std::cerr << "allreduce_bench: a wrong sum\n";
      std::exit(2);
    }
  }
  if (communicator.rank() == 0) {
    std::printf("%7.1f MB  tree %8.3f ms  MPI_Allreduce %8.3f ms  %.2f\n",
                megabytes,
                1e3 * ours,
                1e3 * mpi,
                ours / mpi);
  }
}

}  // namespace

int main(int argc, char** argv) try {
  fn::set_threads(1);
  const fn::ranks::CommunicatorPtr communicator = fn::ranks::mpi_communicator();
  std::vector<double> sizes;
  for (int i = 1; i < argc; ++i) {
    sizes.push_back(std::stod(argv[i]));
  }
  if (sizes.empty()) {
    sizes = {1, 2, 5, 10, 20, 50, 100};
  }
  for (const double size : sizes) {
    measure(*communicator, size);
  }
  return 0;
} catch (const std::exception& error) {
  std::cerr << "allreduce_bench: " << error.what() << "\n";
  return 2;
}
