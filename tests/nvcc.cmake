# CMake 3.25 knows no C++20 for CUDA, so tests call nvcc themselves: with nvcc_command, unless
# nvcc_missing says why they cannot.

find_program(OMNIBAL_NVCC nvcc PATHS /usr/local/cuda/bin)

# The code that nvcc generates around a header is not pedantic.
set(host_warnings ${omnibal_warnings})
list(REMOVE_ITEM host_warnings -Wpedantic)
list(JOIN host_warnings "," host_warnings)
set(nvcc_command "${OMNIBAL_NVCC}" -std=c++20 -arch=sm_80 -Werror all-warnings -Xcompiler
                 ${host_warnings} "-I${PROJECT_SOURCE_DIR}/include")

set(nvcc_missing "")
if(NOT OMNIBAL_NVCC)
  set(nvcc_missing "there is no nvcc")
  return()
endif()

# An nvcc may be too old for C++20 or for the host's compiler.
if(NOT DEFINED OMNIBAL_NVCC_STATUS)
  set(probe "${CMAKE_CURRENT_BINARY_DIR}/nvcc_probe")
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
