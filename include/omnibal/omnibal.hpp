#pragma once

/// \file
/// The whole host part of the library. CUDA, NCCL and MPI have headers of their own.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/config.hpp>
#include <omnibal/demand.hpp>
#include <omnibal/group_loads.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/metrics.hpp>
#include <omnibal/pack/best_fit_decreasing.hpp>
#include <omnibal/pack/best_fit_options.hpp>
#include <omnibal/pack/cu_seqlens.hpp>
#include <omnibal/pack/isf.hpp>
#include <omnibal/pack/keep.hpp>
#include <omnibal/pack/lower_bound.hpp>
#include <omnibal/pack/next_fit.hpp>
#include <omnibal/pack/packing.hpp>
#include <omnibal/pack/score.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/rng/below.hpp>
#include <omnibal/rng/engine.hpp>
#include <omnibal/rng/feistel.hpp>
#include <omnibal/rng/fisher_yates.hpp>
#include <omnibal/rng/numpy.hpp>
#include <omnibal/rng/permutation.hpp>
#include <omnibal/rng/shuffler.hpp>
#include <omnibal/steps.hpp>
#include <omnibal/version.hpp>
