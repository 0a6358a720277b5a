# SPDX-License-Identifier: Apache-2.0
# CMake 3.25 knows no C++20 for CUDA, so the project's own CUDA files are compiled by nvcc itself: with
# nvcc_command, unless nvcc_missing says why it cannot be called.

find_program(OMNIBAL_NVCC nvcc HINTS "${CUDAToolkit_BIN_DIR}" PATHS /usr/local/cuda/bin)

# Never `native`: that would depend on the machine that compiles.
set(OMNIBAL_CUDA_ARCHITECTURE
    80
    CACHE STRING "The architecture for which the project's own CUDA programs are compiled")

# The code that nvcc generates around a header is not pedantic.
set(host_warnings ${omnibal_warnings})
list(REMOVE_ITEM host_warnings -Wpedantic)
list(JOIN host_warnings "," host_warnings)
# For any architecture; nvcc_command is for that of the project.
set(nvcc_compile "${OMNIBAL_NVCC}" -std=c++20 -Werror all-warnings -Xcompiler ${host_warnings}
                 "-I${PROJECT_SOURCE_DIR}/include")
set(nvcc_command ${nvcc_compile} -arch=sm_${OMNIBAL_CUDA_ARCHITECTURE})

# omnibal_cuda_object(variable source options...): sets the variable to an object file that nvcc makes
# of the source, to be listed among the sources of a target that links omnibal::cuda. Not optimized with
# OMNIBAL_BUNDLE_TESTS, where most machines have no device.
function(omnibal_cuda_object variable source)
  cmake_path(GET source STEM name)
  set(object "${CMAKE_CURRENT_BINARY_DIR}/${name}.cuda.o")
  add_custom_command(
    OUTPUT "${object}"
    COMMAND ${nvcc_command} $<IF:$<BOOL:${OMNIBAL_BUNDLE_TESTS}>,-O0,-O3> ${ARGN} -MD -MT "${object}"
            -MF "${object}.d" -c "${source}" -o "${object}"
    DEPENDS "${source}"
    DEPFILE "${object}.d"
    COMMENT "Building CUDA object ${name}"
    VERBATIM)
  set(${variable} "${object}" PARENT_SCOPE)
endfunction()

set(nvcc_missing "${omnibal_cuda_missing}")
if(nvcc_missing)
  return()
endif()
if(NOT OMNIBAL_NVCC)
  set(nvcc_missing "there is no nvcc")
  return()
endif()

# An nvcc may be too old for the host's compiler.
if(NOT DEFINED OMNIBAL_NVCC_STATUS)
  set(probe "${PROJECT_BINARY_DIR}/nvcc_probe")
  file(WRITE "${probe}.cu" "#include <concepts>\n#include <span>\n")
  execute_process(
    COMMAND ${nvcc_command} -c "${probe}.cu" -o "${probe}.o"
    RESULT_VARIABLE status
    OUTPUT_QUIET ERROR_QUIET)
  set(OMNIBAL_NVCC_STATUS ${status} CACHE INTERNAL "What nvcc returns for a C++20 program")
endif()
if(NOT OMNIBAL_NVCC_STATUS EQUAL 0)
  set(nvcc_missing "${OMNIBAL_NVCC} cannot compile C++20 here")
endif()

# Where there is no device to run on, OMNIBAL_BUNDLE_TESTS has nvcc translate the code of the device alone, in
# a third of the time: the code of the host around it is compiled over the stand-in.
set(nvcc_stops_early OFF)
if(OMNIBAL_BUNDLE_TESTS)
  execute_process(COMMAND nvidia-smi -L RESULT_VARIABLE status OUTPUT_QUIET ERROR_QUIET)
  if(NOT status EQUAL 0)
    set(nvcc_stops_early ON)
  endif()
endif()

# test_device_code(test source options...): nvcc translates the code of the source for a device.
function(test_device_code test source)
  string(MAKE_C_IDENTIFIER "${test}" name)
  add_test(NAME "${test}" COMMAND ${nvcc_command} ${ARGN} -ptx "${source}" -o "${CMAKE_CURRENT_BINARY_DIR}/${name}.ptx")
endfunction()
