# SPDX-License-Identifier: Apache-2.0
# The recipe for Conan makes a package, in a home of its own and without any server, and its own test
# uses that.
#
# cmake -DSOURCE=... -DVERSION=... -DWORK=... -DGENERATOR=... -DCOMPILER=... -DCONAN=... -P conan.cmake
cmake_minimum_required(VERSION 3.25)

file(REMOVE_RECURSE "${WORK}")
file(MAKE_DIRECTORY "${WORK}")
set(ENV{CONAN_HOME} "${WORK}/home")
set(ENV{CXX} "${COMPILER}")

function(run variable)
  execute_process(COMMAND "${CONAN}" ${ARGN} WORKING_DIRECTORY "${WORK}" OUTPUT_VARIABLE said
                  ERROR_VARIABLE said RESULT_VARIABLE code)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "conan ${ARGN}\n${said}")
  endif()
  set(${variable} "${said}" PARENT_SCOPE)
endfunction()

# Its build folder is not to lie in the sources.
file(COPY "${SOURCE}/include" "${SOURCE}/cmake" "${SOURCE}/LICENSE" DESTINATION "${WORK}/omnibal")
run(said profile detect)
run(said create omnibal/cmake/packaging/conan -s compiler.cppstd=20 --no-remote)
run(said list "omnibal/${VERSION}#*:*")
if(NOT said MATCHES "packages")
  message(FATAL_ERROR "${said}")
endif()
