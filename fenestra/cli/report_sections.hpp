// The parts of the page of a training, each as markup with its heading; empty where there is
// nothing to show.
#pragma once

#include <fenestra/cli/report.hpp>

#include <string>

namespace fenestra::cli {

// report_numbers.cpp
std::string curves_section(const TrainingReport& report);
std::string confusion_section(const TrainingReport& report);
std::string layers_section(const TrainingReport& report);

// report_costs.cpp
std::string costs_section(const TrainingReport& report);

// report_samples.cpp
std::string mistakes_section(const TrainingReport& report);
std::string segmentation_section(const TrainingReport& report);
std::string reconstruction_section(const TrainingReport& report);
std::string filters_section(const TrainingReport& report);
std::string feature_maps_section(const TrainingReport& report);
std::string saliency_section(const TrainingReport& report);

/// Whether there is a square matrix with something in it.
bool has_confusion(const TrainingReport& report);

}  // namespace fenestra::cli
