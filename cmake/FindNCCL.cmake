# SPDX-License-Identifier: Apache-2.0
# Finds NCCL, NVIDIA's library of collectives: its header with NCCL_VERSION and the target NCCL::headers, and
# where the library is there too, which is not required, the target NCCL::nccl to link.
# NCCL_ROOT, or CUDAToolkit_ROOT, names the folder of an installation; a package of Python has one too,
# nvidia/nccl, whose library has no name without a version.

include(FindPackageHandleStandardArgs)

find_path(NCCL_INCLUDE_DIR nccl.h
          HINTS ${NCCL_HOME} ${CUDAToolkit_INCLUDE_DIRS}
          PATHS /usr/local/cuda/include /usr/local/include
          PATH_SUFFIXES include)
find_library(NCCL_LIBRARY NAMES nccl libnccl.so.2 HINTS ${NCCL_HOME} ${CUDAToolkit_LIBRARY_DIR}
                               PATHS /usr/local/cuda/lib64 /usr/local/cuda/lib
                               PATH_SUFFIXES lib lib64)
mark_as_advanced(NCCL_INCLUDE_DIR NCCL_LIBRARY)

unset(NCCL_VERSION)
if(NCCL_INCLUDE_DIR)
  file(STRINGS "${NCCL_INCLUDE_DIR}/nccl.h" nccl_lines
       REGEX "^#define NCCL_(MAJOR|MINOR|PATCH) +[0-9]+")
  string(REGEX MATCHALL "[0-9]+" nccl_numbers "${nccl_lines}")
  list(JOIN nccl_numbers "." NCCL_VERSION)
endif()

find_package_handle_standard_args(
  NCCL
  REQUIRED_VARS NCCL_INCLUDE_DIR
  VERSION_VAR NCCL_VERSION)

if(NCCL_FOUND AND NOT TARGET NCCL::headers)
  add_library(NCCL::headers INTERFACE IMPORTED GLOBAL)
  set_target_properties(NCCL::headers PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${NCCL_INCLUDE_DIR}")
endif()
if(NCCL_FOUND
   AND NCCL_LIBRARY
   AND NOT TARGET NCCL::nccl)
  add_library(NCCL::nccl UNKNOWN IMPORTED GLOBAL)
  set_target_properties(NCCL::nccl PROPERTIES IMPORTED_LOCATION "${NCCL_LIBRARY}"
                                              INTERFACE_INCLUDE_DIRECTORIES "${NCCL_INCLUDE_DIR}")
endif()
