# SPDX-License-Identifier: Apache-2.0
# The port for vcpkg with stand-ins for its functions, which do what their documentation says; what it
# has installed is used.
#
# cmake -DSOURCE=... -DVERSION=... -DWORK=... -DGENERATOR=... -DCOMPILER=... -P vcpkg.cmake
cmake_minimum_required(VERSION 3.25)

file(REMOVE_RECURSE "${WORK}")
set(PORT omnibal)
set(CURRENT_PACKAGES_DIR "${WORK}/packages")
set(build "${WORK}/build")

function(run)
  execute_process(COMMAND ${ARGN} OUTPUT_VARIABLE said ERROR_VARIABLE said RESULT_VARIABLE code)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${ARGN}\n${said}")
  endif()
endfunction()

function(vcpkg_cmake_configure)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" SOURCE_PATH OPTIONS)
  if(NOT VCPKG_BUILD_TYPE STREQUAL "release")
    message(FATAL_ERROR "vcpkg would build it for debugging too")
  endif()
  run("${CMAKE_COMMAND}" -S "${arg_SOURCE_PATH}" -B "${build}" -G "${GENERATOR}"
      "-DCMAKE_CXX_COMPILER=${COMPILER}" -DCMAKE_BUILD_TYPE=Release
      "-DCMAKE_INSTALL_PREFIX=${CURRENT_PACKAGES_DIR}" ${arg_OPTIONS})
endfunction()

function(vcpkg_cmake_install)
  run("${CMAKE_COMMAND}" --build "${build}" --target install)
endfunction()

# The folder is where it has to be, and nothing else is.
function(vcpkg_cmake_config_fixup)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" CONFIG_PATH "")
  if(NOT arg_CONFIG_PATH STREQUAL "share/${PORT}"
     OR NOT EXISTS "${CURRENT_PACKAGES_DIR}/share/${PORT}/omnibal-config.cmake")
    message(FATAL_ERROR "the package of CMake is in ${arg_CONFIG_PATH}")
  endif()
endfunction()

# A prefix in a file of pkg-config must be relative to the file.
function(vcpkg_fixup_pkgconfig)
  file(GLOB_RECURSE files "${CURRENT_PACKAGES_DIR}/*.pc")
  file(READ "${files}" text)
  if(NOT text MATCHES "^prefix=[$]{pcfiledir}/[.][.]/[.][.]\n" OR text MATCHES "${WORK}")
    message(FATAL_ERROR "${files}:\n${text}")
  endif()
endfunction()

function(vcpkg_install_copyright)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" FILE_LIST)
  file(COPY_FILE "${arg_FILE_LIST}" "${CURRENT_PACKAGES_DIR}/share/${PORT}/copyright")
endfunction()

include("${SOURCE}/cmake/packaging/vcpkg/ports/omnibal/portfile.cmake")

# What vcpkg refuses: headers for debugging, empty folders, no copyright.
file(GLOB_RECURSE entries LIST_DIRECTORIES ON "${CURRENT_PACKAGES_DIR}/*")
foreach(entry IN LISTS entries)
  if(IS_DIRECTORY "${entry}")
    file(GLOB inside "${entry}/*")
    if(NOT inside)
      message(FATAL_ERROR "${entry} is empty")
    endif()
  endif()
endforeach()
file(GLOB top RELATIVE "${CURRENT_PACKAGES_DIR}" "${CURRENT_PACKAGES_DIR}/*")
if(NOT top STREQUAL "include;share")
  message(FATAL_ERROR "the package has: ${top}")
endif()
foreach(name copyright usage omnibal-config-version.cmake)
  if(NOT EXISTS "${CURRENT_PACKAGES_DIR}/share/omnibal/${name}")
    message(FATAL_ERROR "the package has no ${name}")
  endif()
endforeach()

file(
  WRITE "${WORK}/user/CMakeLists.txt"
  "cmake_minimum_required(VERSION 3.25)
project(user LANGUAGES CXX)
find_package(omnibal ${VERSION} EXACT CONFIG REQUIRED)
get_target_property(folders omnibal::omnibal INTERFACE_INCLUDE_DIRECTORIES)
string(REGEX MATCH \"/[^<>]*/include\" folder \"\${folders}\")
if(NOT EXISTS \"\${folder}/omnibal/omnibal.hpp\")
  message(FATAL_ERROR \"\${folders} has no headers\")
endif()
")
run("${CMAKE_COMMAND}" -S "${WORK}/user" -B "${WORK}/user/build" -G "${GENERATOR}"
    "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DCMAKE_PREFIX_PATH=${CURRENT_PACKAGES_DIR}")
