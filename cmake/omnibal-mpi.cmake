# SPDX-License-Identifier: Apache-2.0
# The target omnibal::mpi, for omnibal/comm/mpi.hpp. Needs omnibal::omnibal and
# MPI::MPI_CXX.

add_library(omnibal::mpi INTERFACE IMPORTED GLOBAL)
target_link_libraries(omnibal::mpi INTERFACE omnibal::omnibal MPI::MPI_CXX)
# The C++ bindings that MPI removed long ago.
target_compile_definitions(omnibal::mpi INTERFACE OMPI_SKIP_MPICXX=1 MPICH_SKIP_MPICXX=1)
