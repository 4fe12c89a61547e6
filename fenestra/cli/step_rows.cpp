// Times by layer, and memory by purpose.
#include <fenestra/base/text.hpp>
#include <fenestra/cli/step_rows.hpp>

#include <algorithm>
#include <string>

namespace fenestra::cli {

namespace {

std::string note_of(const nn::StepProfile& profile, const StepKind& kind) {
  if (kind.has_tiles) {
    return "Layers of a training in tiles run in a program for each kind of tile, and are not "
           "measured.";
  }
  const std::string what =
      (kind.has_leaves ? "A leaf of " : "A batch of ") + grouped(profile.samples) +
      (profile.samples == 1 ? " sample" : " samples") + ", without the optimiser";
  return kind.is_compiled
             ? what +
                   ", the fastest of a few runs after the training. A layer without times runs "
                   "inside others: an activation in the convolution before it, or cell by cell "
                   "with what follows. Multiply-adds are of one sample, forward."
             : what +
                   ", run eagerly once after the training: the backward pass is known as a whole, "
                   "not by layers. Multiply-adds are of one sample, forward.";
}

}  // namespace

StepReport step_report(const nn::StepProfile& profile,
                       const nn::Summary& summary,
                       const StepKind& kind) {
  StepReport report;
  report.note = note_of(profile, kind);
  if (profile.samples == 0) {
    return report;
  }
  report.forward = 1e3 * profile.forward;
  report.backward = 1e3 * profile.backward;
  const auto row_of = [&](const std::string& name) {
    return std::find_if(report.rows.begin(), report.rows.end(), [&](const StepRow& row) {
      return row.layer == name;
    });
  };
  for (const nn::SummaryRow& layer : summary.rows) {
    const std::string name = nn::detail::part_of(layer.name, layer.kind);
    if (const auto known = row_of(name); known != report.rows.end()) {
      known->multiply_adds += layer.multiply_adds;  // called more than once
      continue;
    }
    report.rows.push_back({.layer = name,
                           .kind = layer.name.empty() ? "" : layer.kind,
                           .multiply_adds = layer.multiply_adds});
  }
  for (const nn::PartTime& part : profile.parts) {
    const std::string name = part.name.empty() ? "other" : part.name;
    auto row = row_of(name);
    if (row == report.rows.end()) {
      if (part.forward + part.backward <= 0) {
        continue;
      }
      row = report.rows.insert(report.rows.end(), {.layer = name, .kind = ""});
    }
    if (part.forward > 0) {
      row->forward = 1e3 * part.forward;
    }
    if (profile.has_backward_parts && part.backward > 0) {
      row->backward = 1e3 * part.backward;
    }
  }
  return report;
}

std::vector<MemoryRow> memory_rows(const nn::StepMemory& memory, const StepKind& kind) {
  const std::string unknown = kind.has_tiles      ? "not known of a training in tiles"
                              : !kind.is_compiled ? "not known of an eager run"
                                                  : "";
  std::vector<MemoryRow> rows{{"parameters", memory.parameters, ""}};
  const auto add = [&](const std::string& name, std::size_t bytes, const std::string& note) {
    if (bytes > 0) {
      rows.push_back({name, bytes, note});
    }
  };
  add("buffers", memory.buffers, "running statistics, which are kept and not trained");
  add("gradients", memory.gradients, "");
  add("optimiser", memory.optimiser, "what it remembers of each parameter");
  add("average of the weights", memory.average, "");
  rows.push_back({"activations",
                  memory.activations,
                  memory.activations ? "what the forward pass keeps for the backward pass, in the "
                                       "arena"
                                     : unknown});
  rows.push_back(
      {"arena",
       memory.arena,
       memory.arena ? "all that a step computes, in memory that is used again" : unknown});
  const std::size_t batches = static_cast<std::size_t>(1 + kind.batches_ahead);
  add("data",
      memory.batch * batches,
      batches == 1 ? "a batch"
                   : "a batch, and " + grouped(kind.batches_ahead) + " that are made ahead");
  return rows;
}

}  // namespace fenestra::cli
