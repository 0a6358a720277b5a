# SPDX-License-Identifier: Apache-2.0
# A copy of the library's part of the tree and, where there is git, a repository of it with the tag of
# its version.
#
# cmake -DSOURCE=... -DFOLDER=... -P repository.cmake
cmake_minimum_required(VERSION 3.25)

file(REMOVE_RECURSE "${FOLDER}")
file(
  COPY "${SOURCE}/CMakeLists.txt" "${SOURCE}/CMakePresets.json" "${SOURCE}/LICENSE"
       "${SOURCE}/include" "${SOURCE}/cmake"
  DESTINATION "${FOLDER}")

file(READ "${SOURCE}/include/omnibal/version.hpp" header)
string(REGEX MATCHALL "OMNIBAL_VERSION_[A-Z]+ [0-9]+" parts "${header}")
list(TRANSFORM parts REPLACE "[^0-9]" "")
list(JOIN parts "." version)

find_program(GIT git)
if(NOT GIT)
  return()
endif()
function(git)
  execute_process(COMMAND "${GIT}" -c user.name=test -c user.email=test@omnibal.example ${ARGN}
                  WORKING_DIRECTORY "${FOLDER}" OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
endfunction()
git(-c init.defaultBranch=main init --quiet)
git(add --all)
git(commit --quiet --message "The library")
git(tag "v${version}")
