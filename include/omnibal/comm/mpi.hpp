#pragma once

/// \file
/// All of the communicators over MPI. Not part of the umbrella, as it needs MPI.

#include <omnibal/comm/mpi/communicator.hpp>
#include <omnibal/comm/mpi/communicator_ref.hpp>
#include <omnibal/comm/mpi/environment.hpp>
#include <omnibal/comm/mpi/error.hpp>
