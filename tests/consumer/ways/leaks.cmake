# SPDX-License-Identifier: Apache-2.0
# Mistakes after which a project sees more of omnibal than it should: each turns way.cmake red.
#
# cmake -DPAGE=... -DREPOSITORY=... -DPROGRAM=... -DWORK=... -DGENERATOR=... -DCOMPILER=... -P leaks.cmake
cmake_minimum_required(VERSION 3.25)

# build(variable): the status of the trainer with omnibal in a folder of its own.
function(build variable)
  execute_process(
    COMMAND
      "${CMAKE_COMMAND}" -DWAY=folder "-DPAGE=${PAGE}" "-DREPOSITORY=${WORK}/omnibal"
      "-DPROGRAM=${PROGRAM}" "-DWORK=${WORK}/folder" "-DGENERATOR=${GENERATOR}"
      "-DCOMPILER=${COMPILER}" -P "${CMAKE_CURRENT_LIST_DIR}/way.cmake"
    RESULT_VARIABLE status
    OUTPUT_VARIABLE said
    ERROR_VARIABLE said)
  set(${variable} ${status} PARENT_SCOPE)
  set(said "${said}" PARENT_SCOPE)
endfunction()

# mistake(file text replacement): in place of the first such text.
function(mistake file text replacement)
  file(REMOVE_RECURSE "${WORK}/omnibal")
  file(COPY "${REPOSITORY}/" DESTINATION "${WORK}/omnibal" PATTERN .git EXCLUDE)
  file(READ "${WORK}/omnibal/${file}" code)
  string(FIND "${code}" "${text}" position)
  if(position EQUAL -1)
    message(SEND_ERROR "${file} has no longer: ${text}")
  endif()
  string(REPLACE "${text}" "${replacement}" code "${code}")
  file(WRITE "${WORK}/omnibal/${file}" "${code}")
  build(status)
  if(status EQUAL 0)
    message(SEND_ERROR "${file}: '${replacement}' is not seen")
  endif()
endfunction()

file(REMOVE_RECURSE "${WORK}")
file(COPY "${REPOSITORY}/" DESTINATION "${WORK}/omnibal" PATTERN .git EXCLUDE)
build(status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "without a mistake:\n${said}")
endif()

mistake(CMakeLists.txt "if(PROJECT_IS_TOP_LEVEL)" "if(TRUE)")
mistake(CMakeLists.txt "if(CMAKE_SOURCE_DIR STREQUAL CMAKE_CURRENT_SOURCE_DIR)" "if(TRUE)")
mistake(CMakeLists.txt "package of CMake\" \${PROJECT_IS_TOP_LEVEL}" "package of CMake\" ON")
mistake(cmake/library.cmake "if(omnibal_seek_mpi)" "if(TRUE)")
mistake(cmake/library.cmake "SYSTEM ON" "SYSTEM OFF")
mistake(cmake/library.cmake "VERIFY_INTERFACE_HEADER_SETS OFF" "VERIFY_INTERFACE_HEADER_SETS ON")
foreach(
  line
  "option(BUILD_TESTS \"Build the tests\" OFF)"
  "set(CMAKE_BUILD_TYPE Release CACHE STRING \"\" FORCE)"
  "set(CMAKE_CXX_STANDARD 20 PARENT_SCOPE)\nset(CMAKE_CXX_EXTENSIONS OFF PARENT_SCOPE)"
  "target_compile_options(omnibal INTERFACE -Wno-unused)"
  "target_compile_definitions(omnibal INTERFACE NDEBUG)"
  "target_link_libraries(omnibal INTERFACE m)"
  "add_custom_target(omnibal_check)"
  "enable_testing()\nadd_test(NAME omnibal COMMAND omnibal)"
  "message(WARNING \"something is off\")"
  "message(DEPRECATION \"something is old\")"
  "install(FILES LICENSE DESTINATION share)")
  mistake(cmake/library.cmake "add_library(omnibal INTERFACE)" "add_library(omnibal INTERFACE)\n${line}")
endforeach()
