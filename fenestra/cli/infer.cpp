// `fenestra infer`: a model on one picture or array that is read and written by parts, in bounded
// memory and with the bits of the whole.
#include <fenestra/base/parallel.hpp>
#include <fenestra/base/text.hpp>
#include <fenestra/cli/command_line.hpp>
#include <fenestra/cli/infer_files.hpp>
#include <fenestra/cli/network.hpp>
#include <fenestra/cli/run_model.hpp>
#include <fenestra/cli/terminal.hpp>
#include <fenestra/cli/text.hpp>
#include <fenestra/cli/train_watch.hpp>
#include <fenestra/cli/wrap.hpp>
#include <fenestra/io/regions.hpp>
#include <fenestra/nn/slabs.hpp>
#include <fenestra/nn/tiles.hpp>
#include <fenestra/ranks/mpi.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <iostream>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace fenestra::cli {

namespace {

// Of the memory, for what tiles do not count: the program, its graphs and other kept things (37 MB
// with the U-Net and two threads), the scratch of more threads, bands of results and, among
// processes, MPI. At most half.
constexpr std::size_t kSetAside = std::size_t{128} << 20;
constexpr std::size_t kMemory = std::size_t{1} << 30;  // where nothing is said

/// What is to be done: the network, the picture it is given, and where the result goes.
struct Task {
  const InferOptions& options;
  Network<float> network;
  io::RegionReader reader;
  Shape input;
  io::RegionFormat format;

  nn::TracedNetwork traced() const { return nn::trace_network<float>(network.model, input); }
  nn::TileSource<float> source() const {
    return prepared_source(reader, input, network.info.preprocessing);
  }
};

std::string sizes_text(const Shape& input, const Shape& output) {
  return extents(spatial(spatial(input))) + " to " + extents(spatial(spatial(output)));
}

/// What ranks did, added up; of memory, the most.
struct RankFigures {
  double tiles = 0;
  double bytes = 0;  ///< of a tile, the most
  double sent = 0;
  double cells_read = 0;
  double seconds = 0;  ///< of processors, without exchanges
  double peak_memory = 0;
};

RankFigures figures_of_all(ranks::Communicator& communicator, const RankFigures& mine) {
  RankFigures all;
  for (const std::vector<std::byte>& bytes :
       ranks::all_gather(communicator, std::as_bytes(std::span(&mine, 1)))) {
    RankFigures one;
    std::memcpy(&one, bytes.data(), sizeof one);
    all.tiles += one.tiles;
    all.bytes = std::max(all.bytes, one.bytes);
    all.sent += one.sent;
    all.cells_read += one.cells_read;
    all.seconds += one.seconds;
    all.peak_memory = std::max(all.peak_memory, one.peak_memory);
  }
  return all;
}

/// Tiles of several processes, which the first one writes, band by band: after each of its own it
/// takes one from every other, so that nobody waits for long, and nobody keeps more than one.
class TileGathering {
 public:
  TileGathering(ranks::CommunicatorPtr communicator, nn::TileSink<float> sink)
      : communicator_(std::move(communicator)),
        sink_(std::move(sink)),
        goes_on_(static_cast<std::size_t>(communicator_->size()), true) {
    goes_on_[0] = false;
  }

  void write(const Box& box, const float* values) {
    for_each_band(box, values, [&](const Box& band, const float* numbers) {
      if (communicator_->rank() == 0) {
        sink_.write(band, numbers);
        receive();
      } else {
        send(band);
        const ranks::Outgoing send[] = {{0, std::as_bytes(std::span(numbers, cells(band)))}};
        communicator_->exchange(send, {});
      }
    });
  }
  /// After the last one.
  void finish() {
    if (communicator_->rank() != 0) {
      send(Box());
      return;
    }
    while (std::find(goes_on_.begin(), goes_on_.end(), true) != goes_on_.end()) {
      receive();
    }
  }

 private:
  static_assert(std::is_trivially_copyable_v<Box>);

  static std::size_t cells(const Box& box) {
    return static_cast<std::size_t>(*box.shape().elements());
  }
  void send(const Box& box) {
    const ranks::Outgoing send[] = {{0, std::as_bytes(std::span(&box, 1))}};
    communicator_->exchange(send, {});
  }
  /// One band from every rank that has more. One without axes is none.
  void receive() {
    for (int rank = 1; rank < communicator_->size(); ++rank) {
      if (!goes_on_[static_cast<std::size_t>(rank)]) {
        continue;
      }
      Box box;
      const ranks::Incoming place[] = {{rank, std::as_writable_bytes(std::span(&box, 1))}};
      communicator_->exchange({}, place);
      if (box.rank() == 0) {
        goes_on_[static_cast<std::size_t>(rank)] = false;
        continue;
      }
      values_.resize(cells(box));
      const ranks::Incoming numbers[] = {{rank, std::as_writable_bytes(std::span(values_))}};
      communicator_->exchange({}, numbers);
      sink_.write(box, values_.data());
    }
  }

  ranks::CommunicatorPtr communicator_;
  nn::TileSink<float> sink_;
  std::vector<bool> goes_on_;
  std::vector<float> values_;
};

void require_one_tile(ranks::Communicator& communicator, const Shape& tile) {
  static_assert(std::is_trivially_copyable_v<Shape>);
  for (const std::vector<std::byte>& bytes :
       ranks::all_gather_equal(communicator, std::as_bytes(std::span(&tile, 1)))) {
    Shape theirs;
    std::memcpy(&theirs, bytes.data(), sizeof theirs);
    if (theirs != tile) {
      throw Error(ErrorCode::bad_environment,
                  "infer: tiles of " + extents(tile) + " here, of " + extents(theirs) +
                      " on another process\n  fix: the same memory for all of them, or --tile "
                      "with the extents");
    }
  }
}

/// By one process, or by several in turn.
ExitCode infer_in_tiles(const Task& task, const ranks::CommunicatorPtr& communicator) {
  const InferOptions& options = task.options;
  if (communicator && options.halos != "recompute") {
    throw UsageError("--halos " + options.halos +
                     ": slabs take what memory they need; without --memory and --tile");
  }
  const int rank = communicator ? communicator->rank() : 0;
  const int ranks = communicator ? communicator->size() : 1;
  const std::size_t memory = options.memory.value_or(kMemory);
  nn::TileOptions how{
      .memory = memory - std::min(kSetAside, memory / 2), .first = rank, .stride = ranks};
  if (options.tile != "auto") {
    how.tile = parse_extents(options.tile, "--tile");
  }
  ProgressLine progress;
  if (rank == 0) {
    how.progress = [&](Index done, Index all) {
      progress.show([&] {
        return ProgressState{.label = "tile " + std::to_string(done) + "/" + std::to_string(all),
                             .part = static_cast<double>(done) / static_cast<double>(all),
                             .details = ""};
      });
    };
  }
  nn::TiledNetwork<float> tiled(task.traced(), how);
  std::optional<ResultFile> result;
  if (rank == 0) {
    result.emplace(options.output, task.format, task.network.task, tiled.output());
  }
  nn::TileSink<float> sink{.begin = {}, .write = [&](const Box& box, const float* values) {
                             result->write(box, values);
                           }};
  std::optional<TileGathering> gathering;
  if (ranks > 1) {
    require_one_tile(*communicator, tiled.tile());
    gathering.emplace(communicator, std::move(sink));
    sink.write = [&](const Box& box, const float* values) { gathering->write(box, values); };
  }
  const nn::TileReport report = tiled.run(task.source(), sink);
  RankFigures all{.tiles = static_cast<double>(report.tiles),
                  .bytes = static_cast<double>(report.bytes),
                  .cells_read = report.input_share,
                  .peak_memory = static_cast<double>(peak_memory())};
  if (gathering) {
    gathering->finish();
    all = figures_of_all(*communicator, all);
  }
  if (rank != 0) {
    return fine;
  }
  result->commit();
  progress.clear();
  const auto tiles = static_cast<Index>(all.tiles);
  if (options.json) {
    print_json({{"model", task.network.name},
                {"input", shape_json(task.input)},
                {"output", shape_json(report.output)},
                {"ranks", ranks},
                {"tile", shape_json(report.tile)},
                {"tiles", tiles},
                {"programs", report.programs},
                {"bytes", static_cast<std::size_t>(all.bytes)},
                {"cells_read", all.cells_read},
                {"peak_memory", static_cast<std::size_t>(all.peak_memory)},
                {"written", options.output}});
    return fine;
  }
  std::cout << wrapped(sizes_text(task.input, report.output) + " in " + std::to_string(tiles) +
                           (tiles == 1 ? " tile of " : " tiles of ") + extents(report.tile) +
                           (ranks == 1 ? "" : " on " + std::to_string(ranks) + " processes") +
                           ", each cell read " + decimal(all.cells_read, 2) + " times, " +
                           bytes_text(static_cast<std::size_t>(all.bytes)) + " for a tile\n",
                       terminal_of(Stream::out))
            << "written: " << options.output << "\n";
  return fine;
}

/// Adds the processor time of a scope to a sum.
class TimedScope {
 public:
  explicit TimedScope(std::clock_t& sum) : sum_(sum) {}
  ~TimedScope() { sum_ += std::clock() - begin_; }
  TimedScope(const TimedScope&) = delete;
  TimedScope& operator=(const TimedScope&) = delete;

 private:
  std::clock_t& sum_;
  std::clock_t begin_ = std::clock();
};

/// Knows how much of its processor a rank spends in exchanges: MPI does not sleep while it waits.
class TimedCommunicator final : public ranks::Communicator {
 public:
  explicit TimedCommunicator(ranks::CommunicatorPtr of) : of_(std::move(of)) {}

  int rank() const override { return of_->rank(); }
  int size() const override { return of_->size(); }
  std::unique_ptr<ranks::Exchange> start(std::span<const ranks::Outgoing> sends,
                                         std::span<const ranks::Incoming> receives,
                                         int channel) override {
    const TimedScope scope(spent_);
    return std::make_unique<TimedExchange>(of_->start(sends, receives, channel), spent_);
  }
  std::clock_t spent() const { return spent_; }

 private:
  class TimedExchange final : public ranks::Exchange {
   public:
    TimedExchange(std::unique_ptr<ranks::Exchange> of, std::clock_t& spent)
        : of_(std::move(of)), spent_(spent) {}

    bool poll() override {
      const TimedScope scope(spent_);
      return of_->poll();
    }
    void wait() override {
      const TimedScope scope(spent_);
      of_->wait();
    }

   private:
    std::unique_ptr<ranks::Exchange> of_;
    std::clock_t& spent_;
  };

  ranks::CommunicatorPtr of_;
  std::clock_t spent_ = 0;
};

/// A slab of rows on each process; the first one gathers and writes.
ExitCode infer_in_slabs(const Task& task) {
  const InferOptions& options = task.options;
  const auto communicator = std::make_shared<TimedCommunicator>(ranks::mpi_communicator());
  const bool exchanges = options.halos == "exchange";
  nn::SlabNetwork<float> slabs(
      task.traced(), communicator, exchanges ? nn::Halos::exchanged : nn::Halos::recomputed);
  Tensor<float> rows;
  const std::clock_t begin = std::clock();
  const nn::SlabReport report = slabs.run(
      task.source(),
      {.begin = {}, .write = [&](const Box& box, const float* values) {
         rows = Tensor<float>(
             box.shape(),
             std::span<const float>(values, static_cast<std::size_t>(*box.shape().elements())));
       }});
  const RankFigures mine{
      .sent = static_cast<double>(report.sent),
      .cells_read = report.input_share,
      .seconds = static_cast<double>(std::clock() - begin - communicator->spent()) / CLOCKS_PER_SEC,
      .peak_memory = static_cast<double>(peak_memory())};
  if (communicator->rank() != 0) {
    const ranks::Outgoing send[] = {
        {0, std::as_bytes(std::span(rows.data(), rows.values().size()))}};
    communicator->exchange(send, {});
    figures_of_all(*communicator, mine);
    return fine;
  }
  ResultFile result(options.output, task.format, task.network.task, report.output);
  result.write(report.own, rows.data());
  for (int rank = 1; rank < communicator->size(); ++rank) {
    rows = Tensor<float>::uninitialised(slabs.own(rank).shape());
    const ranks::Incoming receive[] = {{rank, std::as_writable_bytes(rows.mutable_values())}};
    communicator->exchange({}, receive);
    result.write(slabs.own(rank), rows.data());
  }
  result.commit();
  const RankFigures all = figures_of_all(*communicator, mine);
  if (options.json) {
    print_json({{"model", task.network.name},
                {"input", shape_json(task.input)},
                {"output", shape_json(report.output)},
                {"ranks", communicator->size()},
                {"halos", options.halos},
                {"stages", report.stages},
                {"sent", all.sent},
                {"cells_read", all.cells_read},
                {"processor_seconds", all.seconds},
                {"peak_memory", all.peak_memory},
                {"written", options.output}});
    return fine;
  }
  std::cout << sizes_text(task.input, report.output) << " on " << communicator->size()
            << " processes, each cell read " << decimal(all.cells_read, 2) << " times, "
            << bytes_text(static_cast<std::size_t>(all.sent)) << " sent in " << report.stages
            << (report.stages == 1 ? " stage" : " stages") << "\nwritten: " << options.output
            << "\n";
  return fine;
}

}  // namespace

ExitCode infer_command(const InferOptions& options) {
  if (options.threads) {
    set_threads(*options.threads);
  }
  const std::optional<io::RegionFormat> format = io::region_format(options.output);
  if (!format) {
    throw UsageError("--output: " + options.output + " is none of .npy, .raw, .pgm, .ppm");
  }
  require_free(options.output, options.force);
  Network<float> network = load_or_make_network<float>(options.model, options.sample);
  io::RegionReader reader(options.input,
                          options.raw ? std::optional(parse_raw(*options.raw)) : std::nullopt);
  const Shape input = input_shape(reader.shape(), network.input, options.input);
  const Task task{options, std::move(network), std::move(reader), input, *format};
  if (ranks::launched_ranks() < 2) {
    return infer_in_tiles(task, nullptr);
  }
  const bool in_tiles = options.memory || options.tile != "auto";
  return in_tiles ? infer_in_tiles(task, ranks::mpi_communicator()) : infer_in_slabs(task);
}

void add_infer(CLI::App& app, CommandLine& line) {
  const auto o = std::make_shared<InferOptions>();
  CLI::App* command = app.add_subcommand(
      "infer", "A model on one large picture, tile by tile, bits as of the whole");
  command->add_option("model", o->model, "a model file, or the name of a ready model")
      ->required()
      ->type_name("FILE|MODEL");
  command->add_option("input", o->input, "a .npy, PGM or PPM file, or raw numbers")
      ->required()
      ->type_name("INPUT");
  command
      ->add_option("-o,--output",
                   o->output,
                   ".npy or .raw for the numbers, .pgm or .ppm for classes of cells or a picture")
      ->required()
      ->type_name("FILE");
  command->add_option("--tile", o->tile, "auto (default), or extents of the output: 512x512")
      ->type_name("SIZE");
  command->add_option("--memory", o->memory, "for all of a process, 1 GiB by default: 1G")
      ->transform(byte_count(1))
      ->type_name("BYTES");
  one_of(
      line,
      command->add_option("--halos",
                          o->halos,
                          "how processes come to rows of their neighbours, recompute by default"),
      {"recompute", "exchange"});
  command
      ->add_option(
          "--raw", o->raw, "what a raw file holds: 3x4096x4096:u8, or u16, i16, f16, f32, f64")
      ->type_name("SHAPE[:TYPE]");
  command->add_option("--input-shape", o->sample, "what the model takes, if the file does not say")
      ->type_name("SHAPE");
  command->add_option("--threads", o->threads, "threads to run on")
      ->check(whole_number<int>(1))
      ->type_name("N");
  command->add_flag("--force", o->force, "replace the output if it exists");
  add_json(*command, line);
  command->footer(
      "\nExamples:\n"
      "  fenestra infer runs/unet-shapes/model.safetensors scan.pgm --memory 1G -o mask.pgm\n"
      "  fenestra infer unet scan.npy --tile 512x512 -o scores.npy\n"
      "  mpirun -n 4 fenestra infer unet scan.npy -o scores.npy\n"
      "\nUnder mpirun each process has a slab of rows, with all that is between its input and "
      "output, whatever that takes; with --memory, which is for each process, or --tile they share "
      "tiles. The picture keeps its size. A model in which a cell needs the whole picture is "
      "refused.");
  line.actions[command] = [o, &line] {
    o->json = line.json;
    return infer_command(*o);
  };
}

}  // namespace fenestra::cli
