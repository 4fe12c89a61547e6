// Checkpoints: all of a trainer in one safetensors file, and back.
//
// The file is written under another name, synced and renamed, and the one before it is kept, so
// that there is a whole one at every moment. A checksum over names, shapes, numbers and metadata
// tells what the format cannot: that a number was damaged.
#include <fenestra/base/version.hpp>
#include <fenestra/io/safetensors.hpp>
#include <fenestra/nn/checksum.hpp>
#include <fenestra/nn/trainer_state.hpp>
#include <fenestra/nn/words.hpp>

#include <charconv>
#include <system_error>

namespace fenestra::nn {

namespace {

const std::string kPrefix = "fenestra.training.";
const std::string kChecksum = kPrefix + "checksum";
// Names that begin so are not of the model: whoever reads the file as one leaves them out.
const std::string kOptimiser = "optimiser.";
const std::string kAverage = "optimiser.average.";

// --- Reading -----------------------------------------------------------------------------------

[[noreturn]] void throw_bad(const std::filesystem::path& path, const std::string& problem) {
  throw Error(ErrorCode::bad_file,
              path.string() + ": " + problem + "\n  fix: a checkpoint that a trainer saved");
}

io::SafetensorsContents load_whole(const std::filesystem::path& path) {
  io::SafetensorsContents contents = io::load_safetensors(path);
  const auto found = contents.metadata.find(kChecksum);
  if (found != contents.metadata.end()) {
    const std::string computed =
        detail::checksum_of(contents.tensors, contents.metadata, kChecksum);
    if (computed != found->second) {
      throw_bad(path,
                "the checksum is " + computed + ", expected " + found->second +
                    ": numbers or texts in the file were damaged");
    }
  }
  return contents;
}

const std::string& text_of(const std::filesystem::path& path,
                           const io::Metadata& metadata,
                           const std::string& key) {
  const auto found = metadata.find(kPrefix + key);
  if (found == metadata.end()) {
    throw_bad(path, "no metadata \"" + kPrefix + key + "\"; it is a model, or of another program");
  }
  return found->second;
}

template <class N>
N number_of(const std::filesystem::path& path,
            const io::Metadata& metadata,
            const std::string& key) {
  const std::string& text = text_of(path, metadata, key);
  N number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw_bad(path, "metadata \"" + kPrefix + key + "\" is \"" + text + "\", expected a number");
  }
  return number;
}

Index count_of(const std::filesystem::path& path,
               const io::Metadata& metadata,
               const std::string& key) {
  const Index count = number_of<Index>(path, metadata, key);
  if (count < 0) {
    throw_bad(
        path,
        "metadata \"" + kPrefix + key + "\" is " + std::to_string(count) + ", expected 0 or more");
  }
  return count;
}

/// "512x512"; empty where the file has none.
Shape tile_of(const std::filesystem::path& path, const io::Metadata& metadata) {
  Shape tile;
  const auto found = metadata.find(kPrefix + "tile");
  if (found == metadata.end()) {
    return tile;
  }
  const std::string& text = found->second;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (tile.rank() < kMaxRank) {
    Index extent = 0;
    const auto [next, error] = std::from_chars(at, end, extent);
    if (error != std::errc() || extent < 1) {
      break;
    }
    tile.push_back(extent);
    if (next == end) {
      return tile;
    }
    if (*next != 'x') {
      break;
    }
    at = next + 1;
  }
  throw_bad(path, "metadata \"" + kPrefix + "tile\" is \"" + text + "\", expected 512x512");
}

/// The tensor of a slot, or of its average.
template <class T>
Tensor<T> tensor_of(const std::filesystem::path& path,
                    const io::TensorMap& tensors,
                    const std::string& name,
                    const Shape& shape) {
  const auto found = tensors.find(name);
  const auto* tensor = found == tensors.end() ? nullptr : std::get_if<Tensor<T>>(&found->second);
  if (tensor == nullptr || tensor->shape() != shape) {
    std::string has = "nothing of that name";
    if (found != tensors.end()) {
      has = std::visit([](const auto& other) { return to_string(other.shape()); }, found->second) +
            (tensor == nullptr ? " of another type" : "");
    }
    throw Error(ErrorCode::shape_mismatch,
                path.string() + ": the model has " + name + " = " + to_string(shape) +
                    ", the file has " + has + "\n  fix: the model that the file was saved from");
  }
  return *tensor;
}

std::filesystem::path previous_of(const std::filesystem::path& path) {
  return std::filesystem::path(path) += ".previous";
}

/// The file that is to be replaced, under another name as well. Where the file system has no second
/// names it is renamed: then its own is missing for a moment, and `resume` finds the other.
void keep_previous(const std::filesystem::path& path) {
  const std::filesystem::path previous = previous_of(path);
  const std::filesystem::path fresh = std::filesystem::path(previous) += ".new";
  std::error_code failed;
  std::filesystem::remove(fresh, failed);
  std::filesystem::create_hard_link(path, fresh, failed);
  std::filesystem::rename(failed ? path : fresh, previous, failed);
  if (failed) {
    throw Error(ErrorCode::bad_file,
                path.string() + ": cannot be kept as " + previous.string() + ": " +
                    failed.message() + "\n  fix: a folder with room and permission");
  }
  // Two names of one file, as a process leaves them that was killed here, are not renamed to one.
  std::filesystem::remove(fresh, failed);
}

}  // namespace

// --- Writing -----------------------------------------------------------------------------------

template <KernelScalar T>
void TrainerCore<T>::save(const std::filesystem::path& path) const {
  const State& s = *state_;
  const std::vector<Slot<T>> all = s.slots();
  io::TensorMap shared;
  if (s.is_sliced()) {
    shared = detail::gathered_state<T>(s.optimiser, all, *s.options.communicator);
  }
  if (!s.writes()) {
    return;
  }
  io::TensorMap tensors;
  std::vector<std::string> names;
  for (const Slot<T>& slot : all) {
    tensors[slot.name] = slot.value->tensor();
    if (slot.trained) {
      names.push_back(slot.name);
    }
  }
  for (auto& [name, tensor] : s.is_sliced() ? shared : s.optimiser.state(names)) {
    tensors[kOptimiser + name] = tensor;
  }
  if (s.average && s.average->steps() > 0) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      tensors[kAverage + names[i]] = s.average->values()[i];
    }
  }
  io::Metadata metadata = s.metadata;
  const auto say = [&](const char* key, const std::string& value) {
    metadata[kPrefix + key] = value;
  };
  const auto say_number = [&](const char* key, double value) {
    say(key, detail::number_text(value));
  };
  metadata["fenestra.format"] = "1";
  metadata["fenestra.version"] = fenestra::version;
  if (s.parts.describe) {
    if (const std::optional<std::string> architecture = s.parts.describe()) {
      metadata["fenestra.architecture"] = *architecture;
    }
  }
  say("loss", s.own_loss ? "own" : s.options.loss);
  say("optimiser", s.options.optimiser);
  say("schedule", s.options.schedule);
  say("resolved_schedule", s.resolved.text());
  say_number("clip_norm", s.options.clip_norm);
  say_number("clip_value", s.options.clip_value);
  say_number("average", s.options.average);
  say("average_steps", std::to_string(s.average ? s.average->steps() : 0));
  say("seed", std::to_string(s.options.seed));
  if (s.options.leaf > 0) {
    say("leaf", std::to_string(s.options.leaf));
  }
  if (s.has_tiles()) {
    say("tile", detail::size_text(s.options.tile));
  }
  say("step", std::to_string(s.steps));
  say("epoch", std::to_string(s.cursor.epoch));
  say("next", std::to_string(s.cursor.next));
  say_number("best_score", s.best_score);
  say("epochs_since_best", std::to_string(s.epochs_since_best));
  say_number("epoch_loss", s.epoch_loss);
  say("epoch_samples", std::to_string(s.epoch_samples));
  say("epoch_labels", std::to_string(s.epoch_labels));
  say("epoch_correct", std::to_string(s.epoch_correct));
  say("checksum", detail::checksum_of(tensors, metadata, kChecksum));

  std::error_code ignored;
  if (std::filesystem::symlink_status(path, ignored).type() ==
      std::filesystem::file_type::regular) {
    // A damaged file must not take the place of the whole one that was kept before it.
    bool keep = s.whole == path || !std::filesystem::exists(previous_of(path), ignored);
    if (!keep) {
      try {
        load_whole(path);
        keep = true;
      } catch (const Error&) {
        keep = false;
      }
    }
    if (keep) {
      keep_previous(path);
    }
  }
  io::save_safetensors(path, tensors, metadata);
  s.whole = path;
}

// --- Resuming ----------------------------------------------------------------------------------

template <KernelScalar T>
std::filesystem::path TrainerCore<T>::resume(const std::filesystem::path& path) {
  State& s = *state_;
  std::filesystem::path taken = path;
  io::SafetensorsContents file;
  try {
    file = load_whole(path);
    text_of(path, file.metadata, "step");
  } catch (const Error& first) {
    taken = previous_of(path);
    std::error_code ignored;
    if (!std::filesystem::exists(taken, ignored)) {
      throw;
    }
    try {
      file = load_whole(taken);
    } catch (const Error& second) {
      throw Error(ErrorCode::bad_file, std::string(first.what()) + "\n" + second.what());
    }
  }

  // All of the file is read and found good before anything changes.
  const io::Metadata& metadata = file.metadata;
  const auto count = [&](const char* key) { return count_of(taken, metadata, key); };
  const auto number = [&](const char* key) { return number_of<double>(taken, metadata, key); };
  TrainerOptions options = s.options;
  if (!s.own_loss) {
    options.loss = text_of(taken, metadata, "loss");
    if (options.loss == "own") {
      throw_bad(taken, "it was saved by a trainer with a loss of its own, and this one has none");
    }
  }
  options.optimiser = text_of(taken, metadata, "optimiser");
  options.schedule = text_of(taken, metadata, "schedule");
  options.clip_norm = number("clip_norm");
  options.clip_value = number("clip_value");
  options.average = number("average");
  options.seed = number_of<std::uint64_t>(taken, metadata, "seed");
  options.leaf = metadata.contains(kPrefix + "leaf") ? count("leaf") : 0;
  options.tile = tile_of(taken, metadata);
  const Schedule resolved = Schedule::parse(text_of(taken, metadata, "resolved_schedule"));
  const Index steps = count("step");
  const Cursor cursor{count("epoch"), count("next")};
  const Index average_steps = count("average_steps");
  const double best_score = number("best_score");
  const Index epochs_since_best = count("epochs_since_best");
  const double epoch_loss = number("epoch_loss");
  const Index epoch_samples = count("epoch_samples");
  const Index epoch_labels = count("epoch_labels");
  const Index epoch_correct = count("epoch_correct");

  const std::vector<Slot<T>> all = s.slots();
  std::vector<Tensor<T>> values;
  std::vector<std::string> names;
  std::vector<Shape> shapes;
  std::vector<Tensor<T>> averages;
  for (const Slot<T>& slot : all) {
    values.push_back(tensor_of<T>(taken, file.tensors, slot.name, slot.value->shape()));
    file.tensors.erase(slot.name);
    if (slot.trained) {
      names.push_back(slot.name);
      shapes.push_back(slot.value->shape());
      if (average_steps > 0) {
        averages.push_back(
            tensor_of<T>(taken, file.tensors, kAverage + slot.name, slot.value->shape()));
        file.tensors.erase(kAverage + slot.name);
      }
    }
  }
  io::TensorMap state;
  for (const auto& [name, tensor] : file.tensors) {
    if (!name.starts_with(kOptimiser)) {
      throw Error(ErrorCode::shape_mismatch,
                  taken.string() + ": the file has " + name +
                      ", which the model has not\n  fix: the model that the file was saved from");
    }
    state[name.substr(kOptimiser.size())] = tensor;
  }
  Optimiser<T> optimiser = Optimiser<T>::make(options.optimiser);
  optimiser.set_state(names, shapes, state);
  if (s.has_ranks() && detail::is_elementwise(optimiser)) {
    detail::set_pieces_of_state<T>(optimiser, all, state, *s.options.communicator);
  }
  io::Metadata kept;
  for (const auto& [key, value] : metadata) {
    if (!key.starts_with(kPrefix)) {
      kept[key] = value;
    }
  }

  s.configure(options);
  s.optimiser = std::move(optimiser);
  s.resolved = resolved;
  if (s.average) {
    s.average->restore(average_steps, std::move(averages));
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    *all[i].value = Value<T>(std::move(values[i]));
  }
  s.steps = steps;
  s.cursor = cursor;
  s.best_score = best_score;
  s.epochs_since_best = epochs_since_best;
  s.epoch_loss = epoch_loss;
  s.epoch_samples = epoch_samples;
  s.epoch_labels = epoch_labels;
  s.epoch_correct = epoch_correct;
  s.metadata = std::move(kept);
  s.whole = taken;
  restart_programs();
  return taken;
}

// The rest of the class is compiled in trainer_core.cpp.
template void TrainerCore<float>::save(const std::filesystem::path&) const;
template void TrainerCore<double>::save(const std::filesystem::path&) const;
template std::filesystem::path TrainerCore<float>::resume(const std::filesystem::path&);
template std::filesystem::path TrainerCore<double>::resume(const std::filesystem::path&);

}  // namespace fenestra::nn
