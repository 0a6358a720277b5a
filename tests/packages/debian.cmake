# SPDX-License-Identifier: Apache-2.0
# Both packages of Debian are made and looked into; the examples that libomnibal-dev has compile with
# what it has, in another folder.
#
# cmake -DSOURCE=... -DVERSION=... -DWORK=... -DGENERATOR=... -DCOMPILER=... -DDPKG_DEB=... -DPKG_CONFIG=...
#       -P debian.cmake
cmake_minimum_required(VERSION 3.25)

file(REMOVE_RECURSE "${WORK}")
set(build "${WORK}/build")

# run(variable command...): what a command says.
function(run variable)
  execute_process(COMMAND ${ARGN} WORKING_DIRECTORY "${WORK}" OUTPUT_VARIABLE said
                  ERROR_VARIABLE complained RESULT_VARIABLE code)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${ARGN}\n${said}${complained}")
  endif()
  set(${variable} "${said}" PARENT_SCOPE)
endfunction()

file(MAKE_DIRECTORY "${WORK}")
set(bare)
foreach(option BUILD_TESTS BUILD_BENCH BUILD_EXAMPLES BUILD_DOCS WITH_MPI WITH_TORCH WITH_CUDA WITH_NCCL)
  list(APPEND bare -DOMNIBAL_${option}=OFF)
endforeach()
run(said "${CMAKE_COMMAND}" -S "${SOURCE}" -B "${build}" -G "${GENERATOR}"
    "-DCMAKE_CXX_COMPILER=${COMPILER}" ${bare})
run(said "${CMAKE_CPACK_COMMAND}" --config "${build}/CPackConfig.cmake" -B "${WORK}")

set(root "${WORK}/root")
foreach(package dev doc)
  set(file "${WORK}/libomnibal-${package}_${VERSION}-1_all.deb")
  if(NOT EXISTS "${file}")
    file(GLOB found "${WORK}/*.deb")
    message(FATAL_ERROR "there is no ${file}, but: ${found}")
  endif()

  # Nothing is needed, and nothing runs when it is installed or removed.
  foreach(field "Package: libomnibal-${package}" "Version: ${VERSION}-1" "Architecture: all"
                "Priority: optional" "Maintainer: .+ <.+@.+>" "Installed-Size: [0-9]+"
                "Description: balances computation in distributed training [(]")
    run(said "${DPKG_DEB}" --field "${file}")
    if(NOT "\n${said}" MATCHES "\n${field}")
      message(FATAL_ERROR "no '${field}' in:\n${said}")
    endif()
  endforeach()
  if("\n${said}" MATCHES "\n(Depends|Pre-Depends|Conflicts): ")
    message(FATAL_ERROR "it needs something:\n${said}")
  endif()
  # Lines of a description are short, and a paragraph begins with a point.
  string(REGEX REPLACE ".*\nDescription: " "" description "\n${said}")
  string(REPEAT "[^\n]" 81 too_long)
  if(description MATCHES "${too_long}"
     OR NOT description MATCHES "\n [.]\n")
    message(FATAL_ERROR "the description:\n${description}")
  endif()
  run(control "${DPKG_DEB}" --info "${file}")
  if(control MATCHES "(preinst|postinst|prerm|postrm)" OR NOT control MATCHES "md5sums")
    message(FATAL_ERROR "${control}")
  endif()

  # Of root, readable by all, written by root alone; nothing but what a package of its name may have.
  run(content "${DPKG_DEB}" --contents "${file}")
  string(REGEX REPLACE "\n$" "" content "${content}")
  string(REPLACE ";" "," content "${content}")
  string(REPLACE "\n" ";" content "${content}")
  foreach(line IN LISTS content)
    if(NOT line MATCHES "^(drwxr-xr-x|-rw-r--r--) root/root +[0-9]+ [^ ]+ [^ ]+ [.](/.*)$")
      message(FATAL_ERROR "libomnibal-${package}: ${line}")
    endif()
    set(path "${CMAKE_MATCH_2}")
    set(allowed "/|/usr/|/usr/share/|/usr/share/doc/|/usr/share/doc/libomnibal-${package}/.*")
    if(package STREQUAL dev)
      string(APPEND allowed "|/usr/include/|/usr/include/omnibal/.*|/usr/share/cmake/"
             "|/usr/share/cmake/omnibal/.*|/usr/share/pkgconfig/|/usr/share/pkgconfig/omnibal.pc")
    endif()
    if(NOT path MATCHES "^(${allowed})$")
      message(FATAL_ERROR "libomnibal-${package} has ${path}")
    endif()
  endforeach()
  foreach(name copyright changelog.gz changelog.Debian.gz)
    if(NOT "${content}" MATCHES "/usr/share/doc/libomnibal-${package}/${name}(;|$)")
      message(FATAL_ERROR "libomnibal-${package} has no ${name}")
    endif()
  endforeach()
  run(said "${DPKG_DEB}" --extract "${file}" "${root}")
endforeach()

# All headers, and all pages with their pictures.
foreach(pair "include/omnibal|usr/include/omnibal|*.[hc]*" "docs|usr/share/doc/libomnibal-doc/docs|*.md")
  string(REPLACE "|" ";" pair "${pair}")
  list(GET pair 0 from)
  list(GET pair 1 to)
  list(GET pair 2 pattern)
  file(GLOB_RECURSE ours RELATIVE "${SOURCE}/${from}" "${SOURCE}/${from}/${pattern}")
  file(GLOB_RECURSE theirs RELATIVE "${root}/${to}" "${root}/${to}/${pattern}")
  if(NOT ours STREQUAL theirs)
    message(FATAL_ERROR "${from}: ${ours}\npackaged: ${theirs}")
  endif()
endforeach()

# The examples, by pkg-config and by find_package.
set(examples "${root}/usr/share/doc/libomnibal-dev/examples")
if(NOT EXISTS "${examples}/quickstart.cpp")
  message(FATAL_ERROR "libomnibal-dev has no quickstart.cpp")
endif()
if(PKG_CONFIG)
  set(ENV{PKG_CONFIG_PATH} "${root}/usr/share/pkgconfig")
  run(flags "${PKG_CONFIG}" --cflags omnibal)
  run(version "${PKG_CONFIG}" --modversion omnibal)
  string(STRIP "${flags}" flags)
  string(STRIP "${version}" version)
  if(NOT version STREQUAL VERSION)
    message(FATAL_ERROR "omnibal.pc is of version ${version}")
  endif()
  run(said "${COMPILER}" -std=c++20 "${flags}" "${examples}/contract.cpp" -o contract)
  run(said "${WORK}/contract")
endif()
file(
  WRITE "${WORK}/user/CMakeLists.txt"
  "cmake_minimum_required(VERSION 3.25)
project(user LANGUAGES CXX)
find_package(omnibal 0.9 REQUIRED)
add_executable(quickstart \"${examples}/quickstart.cpp\")
target_link_libraries(quickstart PRIVATE omnibal::omnibal)
")
run(said "${CMAKE_COMMAND}" -S "${WORK}/user" -B "${WORK}/user/build" -G "${GENERATOR}"
    "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DCMAKE_PREFIX_PATH=${root}/usr")
run(said "${CMAKE_COMMAND}" --build "${WORK}/user/build")
run(said "${WORK}/user/build/quickstart")
