// Every layer.
#pragma once

#include <fenestra/nn/layer.hpp>
#include <fenestra/nn/layers/activation.hpp>
#include <fenestra/nn/layers/combine.hpp>
#include <fenestra/nn/layers/conv.hpp>
#include <fenestra/nn/layers/norm.hpp>
#include <fenestra/nn/layers/pool.hpp>
#include <fenestra/nn/layers/shape.hpp>
