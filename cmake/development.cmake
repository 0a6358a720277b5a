# SPDX-License-Identifier: Apache-2.0
# What the project's own tests, benchmarks and examples share. Users of the library get none of it.

set(omnibal_warnings -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow)

add_library(omnibal_development INTERFACE)
target_compile_options(omnibal_development INTERFACE ${omnibal_warnings})
target_link_libraries(omnibal_development INTERFACE omnibal::omnibal)

set(CMAKE_CXX_EXTENSIONS OFF)

# Open MPI starts neither as root nor with more ranks than cores unless it is told to: the launcher of
# version 4 by the first three variables, that of version 5 by the others. It does not free all that it
# takes, which the address sanitizer would report.
set(omnibal_mpi_environment
    OMPI_ALLOW_RUN_AS_ROOT=1
    OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    OMPI_MCA_rmaps_base_oversubscribe=1
    PRTE_ALLOW_RUN_AS_ROOT=1
    PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
    PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
    ASAN_OPTIONS=detect_leaks=0)

# libtorch 1.13 has a vector of an incomplete class, which clang++ refuses in C++20. Its header for Gloo
# includes those of Gloo, which Debian has in a package of its own.
set(omnibal_has_torch OFF)
find_path(OMNIBAL_GLOO_INCLUDE_DIR gloo/context.h HINTS ${TORCH_INCLUDE_DIRS})
if(TARGET omnibal::torch)
  if(NOT OMNIBAL_GLOO_INCLUDE_DIR)
    set(omnibal_torch_missing "the headers of Gloo were not found")
  elseif(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND Torch_VERSION VERSION_LESS 2)
    set(omnibal_torch_missing "clang++ does not compile libtorch ${Torch_VERSION} as C++20")
  else()
    set(omnibal_has_torch ON)
  endif()
endif()

# Groups the files that match, such as "*/*.cpp", by folder: `areas` names the folders and
# `sources_of_<area>` has the files of each.
macro(omnibal_areas pattern)
  set(areas)
  file(GLOB sources CONFIGURE_DEPENDS "${pattern}")
  foreach(source IN LISTS sources)
    cmake_path(GET source PARENT_PATH area)
    cmake_path(GET area FILENAME area)
    list(APPEND areas ${area})
    list(APPEND sources_of_${area} "${source}")
  endforeach()
  list(REMOVE_DUPLICATES areas)
endmacro()

option(OMNIBAL_BUNDLE_TESTS "Compile the files of tests, examples and benchmarks several at a time" OFF)

# g++ starts to collect its garbage at 128 MiB. Large bundles need several times that, and end a tenth sooner
# if it starts at 512 MiB.
if(OMNIBAL_BUNDLE_TESTS AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:--param=ggc-min-heapsize=524288>)
endif()

# omnibal_runs_briefly(target): optimizing it takes longer than it runs. With OMNIBAL_BUNDLE_TESTS, where
# nothing is measured and everything waits for the compiler, it is not optimized.
function(omnibal_runs_briefly target)
  if(OMNIBAL_BUNDLE_TESTS)
    target_compile_options(${target} PRIVATE -O0)
  endif()
endfunction()

# omnibal_runs_long(target): it runs for longer than optimizing it takes. Optimized in a debug build too, and
# a little in a release build without optimization.
function(omnibal_runs_long target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Debug>:-O2>)
  if(CMAKE_CXX_FLAGS_RELEASE MATCHES "-O0")
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
  endif()
endfunction()

# omnibal_bundle(variable name files...): sets the variable to what compiles the files, with
# OMNIBAL_BUNDLE_TESTS six at a time, for less than half of what each alone costs. Each file is included in
# a namespace of its own, so that their names do not meet, after all headers of the six.
function(omnibal_bundle variable name)
  set(${variable} ${ARGN} PARENT_SCOPE)
  list(LENGTH ARGN left)
  if(NOT OMNIBAL_BUNDLE_TESTS OR left EQUAL 1)
    return()
  endif()
  # A file that includes another header makes another bundle.
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${ARGN})
  set(bundles)
  set(in_bundle 0)
  foreach(source IN LISTS ARGN)
    if(in_bundle EQUAL 0)
      set(headers)
      set(body "")
    endif()
    cmake_path(GET source PARENT_PATH folder)
    file(STRINGS "${source}" includes REGEX "^#include ")
    foreach(include IN LISTS includes)
      string(REGEX MATCH "\"(.*)\"" header "${include}")
      if(header AND EXISTS "${folder}/${CMAKE_MATCH_1}")
        set(include "#include \"${folder}/${CMAKE_MATCH_1}\"")
      endif()
      list(APPEND headers "${include}")
    endforeach()
    cmake_path(GET source STEM stem)
    string(APPEND body "namespace ${stem} {\n#include \"${source}\"\n}\n")
    math(EXPR in_bundle "(${in_bundle} + 1) % 6")
    math(EXPR left "${left} - 1")
    if(in_bundle EQUAL 0 OR left EQUAL 0)
      list(REMOVE_DUPLICATES headers)
      # In the order of omnibal.hpp.
      list(SORT headers)
      set(support ${headers})
      list(FILTER headers INCLUDE REGEX "<omnibal/")
      list(FILTER support EXCLUDE REGEX "<omnibal/")
      list(JOIN headers "\n" headers)
      list(JOIN support "\n" support)
      list(LENGTH bundles number)
      set(bundle "${CMAKE_CURRENT_BINARY_DIR}/bundles/${name}_${number}.cpp")
      file(CONFIGURE OUTPUT "${bundle}" CONTENT "@headers@\n@support@\n@body@" @ONLY)
      list(APPEND bundles "${bundle}")
    endif()
  endforeach()
  set(${variable} ${bundles} PARENT_SCOPE)
endfunction()

function(omnibal_missing name apt_package)
  message(FATAL_ERROR "${name} is missing. ./scripts/setup.sh installs what the project needs, "
                      "or by hand: apt-get install ${apt_package}")
endfunction()

# find_package, with a message that says which package of Debian and Ubuntu has it.
macro(omnibal_require name apt_package)
  find_package(${name} QUIET)
  if(NOT ${name}_FOUND)
    omnibal_missing(${name} ${apt_package})
  endif()
endmacro()
