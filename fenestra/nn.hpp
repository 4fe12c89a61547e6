// Networks: layers, ready models, data, training, and models as files.
#pragma once

#include <fenestra/fenestra.hpp>
#include <fenestra/nn/data/open.hpp>
#include <fenestra/nn/initialise_model.hpp>
#include <fenestra/nn/layers.hpp>
#include <fenestra/nn/losses.hpp>
#include <fenestra/nn/model_file.hpp>
#include <fenestra/nn/models/make.hpp>
#include <fenestra/nn/slabs.hpp>
#include <fenestra/nn/summary.hpp>
#include <fenestra/nn/tiles.hpp>
#include <fenestra/nn/trainer.hpp>
#include <fenestra/ranks/mpi.hpp>
